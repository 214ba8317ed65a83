// The learning rate of each update, a pure function of its number.
#pragma once

#include <cstdint>

#include "riffle/train/train_config.h"

namespace riffle {

// The rate is train.lr times batch / 256, and then
//   cosine               half a cosine from there to train.final_lr times that, over the whole run
//   constant             the same throughout
//   constant_then_decay  the same until train.decay_from of the run, then half a cosine to zero
// Updates are counted from 0. An update past the end has the rate of the end. The constructor
// throws Error when a value makes no schedule, naming its key.
class Schedule {
 public:
  explicit Schedule(const TrainConfig& config);

  double lr(std::int64_t update) const;
  // The predictor's rate: as the others', or held at the start's with train.fixed_predictor_lr.
  double predictor_lr(std::int64_t update) const;

 private:
  ScheduleKind kind_;
  double start_;
  double final_share_;
  double decay_from_;
  double updates_;
  bool fixed_predictor_;
};

}  // namespace riffle

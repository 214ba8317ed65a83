// The learning rate of each update, a pure function of the update's index.
#pragma once

#include <cstdint>

#include "riffle/train/train_config.h"

namespace riffle {

// The rate is train.lr times batch / 256, and then
//   cosine               half a cosine from there to train.final_lr times that, over the whole run
//   constant             the same throughout
//   constant_then_decay  the same until train.decay_from of the run, then half a cosine to zero; in
//                        a run without an end (train.max_updates=0) the same throughout
// Updates are counted from 0. An update after the end has the rate of the end. The constructor
// throws Error, naming the key, if a value makes no sense.
class Schedule {
 public:
  explicit Schedule(const TrainConfig& config);

  double lr(std::int64_t update) const;
  // Returns the predictor's rate: lr(), or the rate of the start with train.fixed_predictor_lr.
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

// Where the time of a training run goes: a table of a hundred updates, once it runs steadily.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

#include <c10/core/Device.h>

#include "riffle/train/learner.h"
#include "riffle/train/profile.h"

namespace riffle {

class TrainingProfile {
 public:
  // `learner` must outlive this. `device`: where its network is.
  TrainingProfile(Learner& learner, c10::Device device);

  // Must be called after each update. Returns the table once, after the last update measured.
  std::optional<std::string> after_update();
  // Must be called at the end of the run. Returns the table of a shorter run, or why there is none;
  // nothing if the table was returned already.
  std::optional<std::string> finish();

 private:
  Learner& learner_;
  const c10::Device device_;
  const std::int64_t begin_;  // the update after which measuring begins
  bool done_ = false;
  std::optional<Profile> parts_;
  LearnerTimes times_;
  std::chrono::steady_clock::time_point start_;
};

}  // namespace riffle

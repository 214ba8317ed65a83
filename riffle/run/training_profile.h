// Where the time of a training run goes: a hundred updates of it, once it runs steadily, as one
// table for people.
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

  // Called after each update. Gives the table once, when there is enough to tell.
  std::optional<std::string> after_update();
  // At the end of a run that was shorter; nothing when the table was given, or why there is none.
  std::optional<std::string> finish();

 private:
  Learner& learner_;
  const c10::Device device_;
  const std::int64_t begin_;  // the update after which it begins
  bool done_ = false;
  std::optional<Profile> parts_;
  LearnerTimes times_;
  std::chrono::steady_clock::time_point start_;
};

}  // namespace riffle

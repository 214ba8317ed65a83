// For tests: a learner whose network is as small as one can be.
#pragma once

#include <string>

#include "riffle/train/learner.h"

namespace riffle {

inline LearnerConfig small_learner() {
  LearnerConfig config;
  config.model.arch = Arch::resnet10;
  config.model.stem = Stem::stride2;
  config.model.width = 4;
  config.model.projector_hidden = 16;
  config.model.projector_out = 16;
  config.model.predictor_hidden = 8;
  config.augment.size = 16;
  config.augment.blur = 0;
  config.train.batch = 8;
  config.train.threads = 1;
  return config;
}

// One with a buffer of four batches.
inline LearnerConfig small_learner(const std::string& policy) {
  LearnerConfig config = small_learner();
  config.buffer.policy = policy;
  config.buffer.capacity = "32";
  config.train.updates = 3;
  config.train.warm_features = 2;
  config.seed = 5;
  return config;
}

}  // namespace riffle

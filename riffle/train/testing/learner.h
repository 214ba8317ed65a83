// For tests: a learner whose network is as small as one can be.
#pragma once

#include <string>
#include <vector>

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

inline LearnerConfig tiny_learner(const std::string& policy) {
  LearnerConfig config = small_learner(policy);
  config.train.max_updates = 12;
  return config;
}

inline std::vector<UpdateReport> updates_of(Learner& learner) {
  std::vector<UpdateReport> reports;
  while (auto report = learner.advance()) reports.push_back(*report);
  return reports;
}

inline std::vector<UpdateReport> updates_of(const LearnerConfig& config, const std::string& uri) {
  const auto stream = open_stream(uri);
  Learner learner(config, *stream);
  return updates_of(learner);
}

inline constexpr const char* kTinyStream = "synthetic:?frames=6&size=16&seed=1";

// Stream batches of four, three of which are in each batch of eight.
inline LearnerConfig fresh_learner(const std::string& policy) {
  auto config = tiny_learner(policy);
  config.train.stream_batch = 4;
  config.train.fresh = 0.375;
  config.model.align_weight = 1;
  return config;
}

// Its blocks wake before updates 3, 6, 9 and 12, counted from 0.
inline LearnerConfig growing_learner(const std::string& objective = "simsiam") {
  auto config = tiny_learner("minred");
  config.model.objective = objective;
  config.model.arch = Arch::resnet18;
  config.model.grow_every = 3;
  config.train.max_updates = 14;
  return config;
}

}  // namespace riffle

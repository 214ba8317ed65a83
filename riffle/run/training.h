// A training run: a learner on a stream, with its run folder, metrics, checkpoints and progress
// line.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "riffle/run/config.h"
#include "riffle/run/run_folder.h"

namespace riffle {

struct TrainingResult {
  std::int64_t updates = 0;
  std::int64_t samples_seen = 0;
  double loss = 0;  // of the last update
  double images_per_s = 0;
  std::map<std::string, std::int64_t> skipped;
};

// Trains until the stream ends or max_updates is reached; leaves a checkpoint at the end.
TrainingResult train(const Config& config, const RunFolder& folder);

}  // namespace riffle

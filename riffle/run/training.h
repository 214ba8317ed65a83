// A training run: a learner on a stream, with its run folder, metrics, checkpoints and progress
// line.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>

#include "riffle/run/config.h"

namespace riffle {

struct TrainingResult {
  std::int64_t updates = 0;
  std::int64_t samples_seen = 0;
  double loss = 0;  // of the last update
  double images_per_s = 0;
  std::map<std::string, std::int64_t> skipped;
};

// Makes the run folder `path` and trains until the stream ends or max_updates is reached; leaves a
// checkpoint at the end. Nothing is made for a run that cannot begin: bad configuration, a stream
// that does not open, a folder that holds a run.
TrainingResult train(const Config& config, const std::filesystem::path& path);

}  // namespace riffle

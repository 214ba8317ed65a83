// A training run: a learner on a stream, with its run folder, metrics, checkpoints and progress
// line.
#pragma once

#include <cstdint>
#include <filesystem>
#include <limits>
#include <map>
#include <string>
#include <vector>

#include "riffle/run/config.h"

namespace riffle {

struct TrainingResult {
  std::int64_t updates = 0;
  std::int64_t samples_seen = 0;
  double loss = std::numeric_limits<double>::quiet_NaN();  // of the last update; NaN: none was made
  double images_per_s = 0;
  std::map<std::string, std::int64_t> skipped;
  bool stopped = false;  // by a signal or run.max_hours: there is more to learn
};

struct TrainingOptions {
  bool profile = false;  // say where the time of an update goes, on standard error
};

// Makes the run folder `path` and trains until the stream ends or max_updates is reached; leaves a
// checkpoint at the end. Nothing is made for a run that cannot begin: bad configuration, a stream
// that does not open, a folder that holds a run.
//
// While it runs, SIGINT or SIGTERM finish the update and write a checkpoint; a second one ends the
// process at once. A stream that fails on its way leaves a checkpoint too, and then throws Error
// with the stream's words and the command that goes on. Throws Error as well when training cannot
// go on, naming the last good checkpoint.
TrainingResult train(Config config, const std::filesystem::path& path,
                     const TrainingOptions& options = {});

// Goes on with the run in `path` from its newest whole checkpoint, or from the beginning when it
// has none yet. When none is whole, but only pictures in the buffer are damaged, others take their
// places, with a warning. `assignments` ("key=value") change keys that do not change what was
// learned so far (see kResumeKeys in training.cc); the run's config.yaml has them from then on.
TrainingResult resume(const std::filesystem::path& path,
                      const std::vector<std::string>& assignments = {});

}  // namespace riffle

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
  // Of the last update; NaN: none was made.
  double loss = std::numeric_limits<double>::quiet_NaN();
  double images_per_s = 0;
  std::map<std::string, std::int64_t> skipped;
  // By a signal or run.max_hours, before its end.
  bool stopped = false;
};

struct TrainingOptions {
  // Print where the time of an update goes, on standard error.
  bool profile = false;
  // What `riffle probe` begins with, for probes along training (run_probes.h); empty: none.
  std::vector<std::string> probe_program = {};
  // Of the program: ranks (riffle/dist) of different versions do not train together.
  std::string version = {};
};

// Makes the run folder `path` and trains until the stream ends or max_updates is reached; leaves a
// checkpoint at the end. Makes nothing for a run that cannot begin: a bad configuration, a stream
// that does not open, a folder that holds a run.
//
// While it runs, SIGINT, SIGTERM or SIGHUP finishes the update and writes a checkpoint; one
// that comes a second later or more ends the process at once. If the stream fails, writes a
// checkpoint and throws Error with the stream's message and the command that continues. Throws
// Error, naming the newest checkpoint, if training cannot continue.
TrainingResult train(Config config, const std::filesystem::path& path,
                     const TrainingOptions& options = {});

// What to do if config.yaml was edited since the checkpoint, beyond what `assignments` may change.
enum class EditedConfig { refuse, accept };

// Continues the run in `path` from its newest whole checkpoint, or from the beginning if it has
// none yet. If none is whole, but only pictures in the buffer are damaged, replaces them by others,
// with a warning. `assignments` ("key=value") change keys that do not affect what was learned so
// far (kResumeKeys in training.cc) and are written to the run's config.yaml.
// Throws Error, naming the keys, if config.yaml is not what the checkpoint was made with, unless
// that is accepted.
TrainingResult resume(const std::filesystem::path& path,
                      const std::vector<std::string>& assignments = {},
                      EditedConfig edited = EditedConfig::refuse,
                      const TrainingOptions& options = {});

}  // namespace riffle

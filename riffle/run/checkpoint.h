// A checkpoint: the network and the optimiser after some update, as one safetensors file written
// atomically.
#pragma once

#include <filesystem>
#include <memory>

#include "riffle/run/config.h"
#include "riffle/train/learner.h"

namespace riffle {

void save_checkpoint(const std::filesystem::path& path, Learner& learner, std::int64_t update);

// The network of a run, with the weights of a checkpoint; untrained (the run's own initial weights)
// without one. Throws Error naming the file when it does not fit the configuration.
std::shared_ptr<Objective> load_objective(const Config& config);
std::shared_ptr<Objective> load_objective(const Config& config,
                                          const std::filesystem::path& checkpoint);

}  // namespace riffle

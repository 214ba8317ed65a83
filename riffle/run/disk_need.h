// How much disk the checkpoints of a run will take.
#pragma once

#include <cstdint>

#include "riffle/run/config.h"
#include "riffle/run/run_folder.h"

namespace riffle {

// Returns about the most bytes that a run's checkpoints take together: the picture log, at most
// twice the buffer, and the states of the checkpoints kept and of the one being written.
std::uint64_t checkpoint_bytes(const Config& config, Learner& learner);

// Says in the log how much that is, and warns if the folder's disk has less.
void tell_disk_need(const RunFolder& folder, const Config& config, Learner& learner);

}  // namespace riffle

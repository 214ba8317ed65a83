// The device that a configuration names.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include <c10/core/Device.h>

#include "riffle/dist/ranks.h"

namespace riffle {

// Returns the device: cpu, cuda (also called gpu), or cuda:N, the GPU of that index, from 0. In
// cuda:{local_rank} N is this rank's number on its machine (riffle/dist); 0 in a process that was
// started alone, as one that probes such a run.
//
// A process uses one GPU. cuda:N hides the others from it, so N must be asked for before anything
// else in the process uses CUDA; here the device is then called cuda. Throws Error for an unknown
// name, a GPU that is not there, and a second GPU.
at::Device open_device(const std::string& name);

// Returns the same ranks, which exchange what lies on the device from GPU to GPU: see
// ranks_on_gpu() (riffle/dist/ranks_gpu.h), which says when they cannot. Null then, and if it is
// not a GPU. All ranks must call it.
std::unique_ptr<Ranks> ranks_on(at::Device device, Ranks& ranks);

// Returns what CUDA_VISIBLE_DEVICES has to say for the process to see just one of the GPUs that it
// sees with `visible`, the variable's present value (empty: all). Throws Error if that lists fewer.
std::string visible_gpu(const std::string& visible, std::int64_t index);

}  // namespace riffle

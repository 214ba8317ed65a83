// Ranks (ranks.h) that have a GPU each and exchange what lies there from GPU to GPU, by NCCL; only
// in builds with CUDA.
//
// sum(), add_up(), gather() and exchange() of tensors on the GPU queue their work on the current
// stream and return: the host does not wait, and they can be recorded in a CUDA graph once each was
// called outside of one. All else, and all that lies in host memory, goes through the ranks below.
#pragma once

#include <memory>

#include "riffle/dist/ranks.h"

namespace riffle {

// Returns the same ranks, which exchange by NCCL; null, on all of them, if two share a GPU or if
// riffle was built without NCCL: rank 0 then says so. All ranks must call it, outside of a
// recording. One rank alone gets a communicator of its own, to measure with. `ranks` must outlive
// what is returned, and that all graphs recorded with it. Throws Error for what NCCL cannot do.
std::unique_ptr<Ranks> ranks_on_gpu(Ranks& ranks);

}  // namespace riffle

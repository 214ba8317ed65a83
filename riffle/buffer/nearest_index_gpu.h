// The nearest-neighbour index on a GPU; only in builds with CUDA.
#pragma once

#include <cstdint>
#include <memory>

#include "riffle/buffer/nearest_index.h"

namespace riffle {

std::unique_ptr<NearestIndex> make_nearest_index_gpu(const NearestIndexConfig& config);
// What it takes on the GPU besides the lists.
std::uint64_t nearest_index_gpu_bytes(const NearestIndexConfig& config);

}  // namespace riffle

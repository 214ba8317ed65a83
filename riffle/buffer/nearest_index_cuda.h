// The nearest-neighbour index on a GPU. A build without CUDA has it too, and refuses.
#pragma once

#include <cstdint>
#include <memory>

#include "riffle/buffer/nearest_index.h"

namespace riffle {

std::unique_ptr<NearestIndex> make_nearest_index_cuda(const NearestIndexConfig& config);
// What it takes on the GPU besides the lists.
std::uint64_t nearest_index_cuda_bytes(const NearestIndexConfig& config);

}  // namespace riffle

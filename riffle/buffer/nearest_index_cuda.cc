#include "riffle/buffer/nearest_index_cuda.h"

#include "riffle/base/error.h"

namespace riffle {

std::unique_ptr<NearestIndex> make_nearest_index_cuda(const NearestIndexConfig&) {
  throw Error("this riffle was built without CUDA; use device cpu");
}

std::uint64_t nearest_index_cuda_bytes(const NearestIndexConfig&) {
  throw Error("this riffle was built without CUDA; use device cpu");
}

}  // namespace riffle

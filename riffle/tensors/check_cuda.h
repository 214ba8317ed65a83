// Checks calls of CUDA; only in builds with CUDA.
#pragma once

#include <string_view>

#include <cuda_runtime_api.h>

#include "riffle/base/error.h"
#include "riffle/base/text.h"

namespace riffle {

// Throws Error, saying that `what` failed on the GPU and why, unless `status` is success.
inline void check_cuda(cudaError_t status, std::string_view what) {
  if (status == cudaSuccess) return;
  throw Error(cat(what, " failed on the GPU: ", cudaGetErrorString(status)), ErrorKind::failure);
}

}  // namespace riffle

// Batch normalisation, ReLU and 3x3 max-pooling with stride 2 and padding 1 in one pass, for the
// stem, whose maps are by far the largest. The conventions are those of batch_norm_cuda.h; numbers
// are bfloat16.
#pragma once

#include <cstdint>

#include <cuda_runtime_api.h>

#include "riffle/model/batch_norm_cuda.h"

namespace riffle::batch_norm_cuda {

struct PoolShape {
  int views;
  std::int64_t pictures;            // per view
  int height, width;                // of the maps
  int pooled_height, pooled_width;  // half of it, rounded up
  int channels;                     // a multiple of 8
};

// Sets y to the pooled maps, `largest` to the x that each came from, and `where` to which of the
// nine pixels that was, 0 to 8, or 9 if the ReLU let none through. Both may be null.
cudaError_t pool(const PoolShape& shape, const void* x, const float* scale, const float* shift,
                 void* y, void* largest, std::uint8_t* where, cudaStream_t stream);

// Computes the gradient of x from the gradient of y.
cudaError_t pool_gradient(const PoolShape& shape, const void* grad, const std::uint8_t* where,
                          const void* x, const float* coefficients, void* out, cudaStream_t stream);

}  // namespace riffle::batch_norm_cuda

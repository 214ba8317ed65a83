// The functions of batch_norm.h for maps on a GPU, by kernels of our own; only in builds with CUDA.
#pragma once

#include "riffle/model/batch_norm.h"

namespace riffle {

// Returns whether the kernels take these: float32 or bfloat16 maps on a GPU, float32 statistics,
// channels in multiples of 16 bytes.
bool fits_batch_norm_gpu(const BatchNormTensors& norm, const torch::Tensor& x);

// As batch_norm_forked(). Requires what fits.
Fork batch_norm_gpu(const BatchNormTensors& norm, const torch::Tensor& x, bool training,
                    std::int64_t views, bool relu, const torch::Tensor& residual);

// As batch_norm_relu_pool(). Requires bfloat16 maps that fit.
torch::Tensor batch_norm_relu_pool_gpu(const BatchNormTensors& norm, const torch::Tensor& x,
                                       bool training, std::int64_t views);

}  // namespace riffle

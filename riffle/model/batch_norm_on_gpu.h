// batch_norm() for maps on a GPU, by kernels of our own. Part of batch_norm.cc, which says what it
// does.
#pragma once

#include "riffle/model/batch_norm.h"

namespace riffle {

// Whether the kernels take these: float32 or bfloat16 maps on a GPU, float32 statistics, channels
// in multiples of 16 bytes. Always false in a build without CUDA.
bool fits_gpu_kernels(const BatchNormTensors& norm, const torch::Tensor& x);

// Only for what fits.
torch::Tensor batch_norm_on_gpu(const BatchNormTensors& norm, const torch::Tensor& x, bool training,
                                std::int64_t views, bool relu, const torch::Tensor& residual);

}  // namespace riffle

// The loops of the CPU's batch normalisation, each over a run of rows [rows, channels] in memory
// order. For batch_norm.cc alone.
//
// They have a file of their own so that they can be compiled for several instruction sets without
// LibTorch's headers. Sums are added to, in an order that depends on `rows` alone, and no
// multiply-add is contracted: every instruction set gives the same bits.
#pragma once

#include <cstdint>

namespace riffle::batch_norm_kernel {

// sum += sum of (x - origin), squares += sum of (x - origin)^2, per channel.
void add_moments(const float* x, std::int64_t rows, std::int64_t channels, const float* origin,
                 float* sum, float* squares);

// y = x * scale + shift, then + residual unless it is null, then ReLU if asked. `y` may be `x`.
void apply(const float* x, const float* residual, std::int64_t rows, std::int64_t channels,
           const float* scale, const float* shift, bool relu, float* y);

// Given the gradient `gy` of the output: sum += sum of g, products += sum of g * (x - mean), where
// g is gy, or gy where y > 0 and else 0 unless `y` is null. Also stores g unless `masked` is null.
void add_gradients(const float* gy, const float* y, const float* x, std::int64_t rows,
                   std::int64_t channels, const float* mean, float* sum, float* products,
                   float* masked);

// gx = a * g + b * (x - mean) + c, with g as above.
void apply_gradient(const float* gy, const float* y, const float* x, std::int64_t rows,
                    std::int64_t channels, const float* mean, const float* a, const float* b,
                    const float* c, float* gx);

}  // namespace riffle::batch_norm_kernel

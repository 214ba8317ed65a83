// The GPU's part of batch normalisation, as plain functions that queue kernels on a stream.
//
// Maps lie in memory as rows of channels: views * rows of them, each view normalised by its own
// statistics. Numbers are float32 or bfloat16, sums and statistics float32. Every pointer is to the
// device; the functions hold no state and allocate nothing. Each returns what cudaGetLastError()
// says after its launches. A sum is always added up in the same order.
#pragma once

#include <cstdint>

#include <cuda_runtime_api.h>

#include "riffle/tensors/kernels_cuda.h"

namespace riffle::batch_norm_cuda {

// Channels must be a multiple of this: 16 bytes are read at a time.
constexpr int group_of(Number number) { return number == Number::float32 ? 4 : 8; }

struct Shape {
  int views;
  std::int64_t rows;  // per view
  int channels;
  Number number;
};

// Returns in how many parts the rows of a view are summed up; partial sums take
// 2 * views * parts * channels floats.
int parts_of(const Shape& shape);

struct Statistics {
  float* mean;     // [views, channels]
  float* inverse;  // 1 / sqrt(variance + epsilon)
  float* scale;    // y = x * scale + shift
  float* shift;
};

// Computes the statistics of each view; the running ones follow them in turn. gamma and beta may be
// null.
cudaError_t statistics(const Shape& shape, const void* x, const float* gamma, const float* beta,
                       float momentum, float epsilon, float* running_mean, float* running_var,
                       float* partial_sums, const Statistics& out, cudaStream_t stream);

// Sets y to x * scale + shift (+ residual), then, with relu, to 0 where that is below 0.
cudaError_t apply(const Shape& shape, const void* x, const void* residual, const float* scale,
                  const float* shift, bool relu, void* y, cudaStream_t stream);

// The first half of the backward pass: the gradients of gamma and beta, and what apply_gradients()
// needs. With relu the mask comes from `y` where it is given, otherwise from x. `population`: the
// rows per view that the statistics are of; the rows given here may be only those with a gradient.
// `other`: a second gradient to be added to the first, or null; it needs relu, y and out.masked.
struct Sums {
  float* coefficients;  // [3, views, channels]
  float* gamma;         // [channels]; may be null, with beta
  float* beta;
  // The gradient below the ReLU, which is the residual's own; may be null.
  void* masked;
};
cudaError_t gradient_sums(const Shape& shape, const void* grad, const void* other, const void* x,
                          const void* y, bool relu, std::int64_t population, const float* gamma,
                          const Statistics& statistics, float* partial_sums, const Sums& out,
                          cudaStream_t stream);

// The second half of the backward pass: the gradient of x.
cudaError_t apply_gradients(const Shape& shape, const void* grad, const void* x, const void* y,
                            bool relu, const Statistics& statistics, const float* coefficients,
                            void* out, cudaStream_t stream);

}  // namespace riffle::batch_norm_cuda

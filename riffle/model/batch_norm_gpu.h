// The GPU's part of batch normalisation, as plain functions that queue kernels on a stream.
//
// Maps lie in memory as rows of channels: views * rows of them, each view normalised by its own
// statistics. Numbers are float32 or bfloat16, sums and statistics float32. Every pointer is to the
// device; the functions hold no state and take no memory. Each returns what cudaGetLastError() says
// after its launches. A sum is always added up in the same order.
#pragma once

#include <cstdint>

#include <cuda_runtime_api.h>

namespace riffle::batch_norm_gpu {

enum class Number : int { float32, bfloat16 };

// Channels must be a multiple of this: 16 bytes are read at a time.
constexpr int group_of(Number number) { return number == Number::float32 ? 4 : 8; }

struct Shape {
  int views;
  std::int64_t rows;  // per view
  int channels;
  Number number;
};

// How many parts the rows of a view are summed up in; partial sums take
// 2 * views * parts * channels floats.
int parts_of(const Shape& shape);

struct Statistics {
  float* mean;     // [views, channels]
  float* inverse;  // 1 / sqrt(variance + epsilon)
  float* scale;    // y = x * scale + shift
  float* shift;
};

// gamma and beta may be null. The running statistics follow each view's in turn.
cudaError_t statistics(const Shape& shape, const void* x, const float* gamma, const float* beta,
                       float momentum, float epsilon, float* running_mean, float* running_var,
                       float* partial_sums, const Statistics& out, cudaStream_t stream);

// y = x * scale + shift (+ residual), then 0 for what is below 0 when relu.
cudaError_t apply(const Shape& shape, const void* x, const void* residual, const float* scale,
                  const float* shift, bool relu, void* y, cudaStream_t stream);

// The gradient of x, gamma and beta from that of y. With relu the mask comes from `y` where it is
// given, and else from x; with `masked` the gradient behind the ReLU, which is the residual's own,
// is written there. coefficients: scratch of 3 * views * channels floats.
struct Gradients {
  void* x;
  float* gamma;  // may be null, with beta
  float* beta;
  void* masked;  // may be null
};
cudaError_t gradients(const Shape& shape, const void* grad, const void* x, const void* y, bool relu,
                      const float* gamma, const Statistics& statistics, float* partial_sums,
                      float* coefficients, const Gradients& out, cudaStream_t stream);

}  // namespace riffle::batch_norm_gpu

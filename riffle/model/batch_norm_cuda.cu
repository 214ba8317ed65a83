#include <algorithm>

#include "riffle/model/batch_norm_cuda.h"
#include "riffle/model/pack.cuh"

namespace riffle::batch_norm_cuda {
namespace {

// A block of threads goes through some rows of a tile of channels: 8 lanes of 16 bytes, so that a
// row is read in one line of 128 bytes, and 32 rows at a time. What belongs to a channel stays in
// registers.
constexpr int kLanes = 8;
constexpr int kRowsAtOnce = 32;
constexpr int kThreads = kLanes * kRowsAtOnce;
constexpr int kFlight = 4;  // loads of 16 bytes that a thread has under way
// Blocks that a multiprocessor holds at a time; all blocks of a launch run at once.
constexpr int kBlocksAtOnce = 4;
constexpr int kWarp = 32;
constexpr int kWarps = kThreads / kWarp;

// Where a thread works: its first channel, and the rows [begin, end) of the view, every kRowsAtOnce
// from `begin` on.
template <typename T>
struct Place {
  static constexpr int kSize = Pack<T>::kSize;
  int channel;
  bool active;
  std::int64_t begin, end;
  std::int64_t first;  // row of the view's first one

  __device__ Place(int channels, std::int64_t rows, int parts) {
    channel = (blockIdx.x * kLanes + threadIdx.x % kLanes) * kSize;
    active = channel < channels;
    const std::int64_t part = (rows + parts - 1) / parts;
    const std::int64_t from = blockIdx.y * part;
    begin = from + threadIdx.x / kLanes;
    end = from + part < rows ? from + part : rows;
    first = blockIdx.z * rows;
  }
};

// Adds up `values`, one per channel of every thread, over the rows of the block, and leaves the
// sums of channel c of the tile at out[c].
template <int kSize>
__device__ void add_rows(float* values, float* shared, float* out, int channels_left) {
  const int lane = threadIdx.x % kLanes;
  const int warp = threadIdx.x / kWarp;
#pragma unroll
  for (int i = 0; i < kSize; ++i) {
    for (int step = kLanes; step < kWarp; step *= 2) {
      values[i] += __shfl_xor_sync(0xFFFFFFFFu, values[i], step);
    }
  }
  __syncthreads();
  if (threadIdx.x % kWarp < kLanes) {
#pragma unroll
    for (int i = 0; i < kSize; ++i) shared[warp * kLanes * kSize + lane * kSize + i] = values[i];
  }
  __syncthreads();
  const int c = threadIdx.x;
  if (c < kLanes * kSize && c < channels_left) {
    float sum = 0;
    for (int w = 0; w < kWarps; ++w) sum += shared[w * kLanes * kSize + c];
    out[c] = sum;
  }
}

// Sums of x - origin and their squares, where origin is the view's first row: differences keep the
// variance exact when a channel's mean is far from zero. partial: [2][views][parts][channels].
template <typename T>
__global__ void __launch_bounds__(kThreads, kBlocksAtOnce)
    sum_moments(const T* __restrict__ x, int channels, std::int64_t rows, int parts,
                float* __restrict__ partial) {
  constexpr int kSize = Pack<T>::kSize;
  __shared__ float shared[kWarps * kLanes * kSize];
  const Place<T> place(channels, rows, parts);
  float sums[kSize] = {}, squares[kSize] = {};
  if (place.active) {
    const T* base = x + place.first * channels + place.channel;
    float origin[kSize];
    load(base).read(origin);
    for (std::int64_t row = place.begin; row < place.end; row += kFlight * kRowsAtOnce) {
      Pack<T> packs[kFlight];
#pragma unroll
      for (int u = 0; u < kFlight; ++u) {
        const std::int64_t r = row + u * kRowsAtOnce;
        packs[u] = load(base + (r < place.end ? r : 0) * channels);
      }
#pragma unroll
      for (int u = 0; u < kFlight; ++u) {
        if (row + u * kRowsAtOnce >= place.end) break;
        float values[kSize];
        packs[u].read(values);
#pragma unroll
        for (int i = 0; i < kSize; ++i) {
          const float d = values[i] - origin[i];
          sums[i] += d;
          squares[i] += d * d;
        }
      }
    }
  }
  const int tile = blockIdx.x * kLanes * kSize;
  float* out =
      partial + (blockIdx.z * static_cast<std::int64_t>(parts) + blockIdx.y) * channels + tile;
  add_rows<kSize>(sums, shared, out, channels - tile);
  add_rows<kSize>(squares, shared, out + gridDim.z * static_cast<std::int64_t>(parts) * channels,
                  channels - tile);
}

constexpr int kFinishChannels = 32;
constexpr int kFinishParts = 16;

// The sum over parts of one channel, by the threads of one column.
__device__ double add_parts(const float* partial, int parts, int channels, int channel,
                            double (*shared)[kFinishChannels]) {
  double sum = 0;
  if (channel < channels) {
    for (int part = threadIdx.y; part < parts; part += kFinishParts) {
      sum += partial[static_cast<std::int64_t>(part) * channels + channel];
    }
  }
  __syncthreads();
  shared[threadIdx.y][threadIdx.x] = sum;
  __syncthreads();
  sum = 0;
  for (int i = 0; i < kFinishParts; ++i) sum += shared[i][threadIdx.x];
  return sum;
}

template <typename T>
__device__ float to_float(T value) {
  return static_cast<float>(value);
}

template <typename T>
__global__ void finish_statistics(const T* __restrict__ x, int views, int channels,
                                  std::int64_t rows, int parts, const float* partial,
                                  const float* gamma, const float* beta, float momentum,
                                  float epsilon, float* running_mean, float* running_var,
                                  Statistics out) {
  __shared__ double shared[kFinishParts][kFinishChannels];
  const int channel = blockIdx.x * kFinishChannels + threadIdx.x;
  const std::int64_t stride = static_cast<std::int64_t>(parts) * channels;
  const double n = static_cast<double>(rows);
  for (int view = 0; view < views; ++view) {
    const double sum = add_parts(partial + view * stride, parts, channels, channel, shared);
    const double squares =
        add_parts(partial + (views + view) * stride, parts, channels, channel, shared);
    if (threadIdx.y != 0 || channel >= channels) continue;
    const double offset = sum / n;
    const double mean = static_cast<double>(to_float(x[view * rows * channels + channel])) + offset;
    const double variance = fmax(0.0, squares / n - offset * offset);
    const float inverse = static_cast<float>(1.0 / sqrt(variance + epsilon));
    const float scale = inverse * (gamma ? gamma[channel] : 1.0f);
    const int at = view * channels + channel;
    out.mean[at] = static_cast<float>(mean);
    out.inverse[at] = inverse;
    out.scale[at] = scale;
    out.shift[at] = (beta ? beta[channel] : 0.0f) - static_cast<float>(mean) * scale;
    running_mean[channel] =
        static_cast<float>((1.0 - momentum) * running_mean[channel] + momentum * mean);
    running_var[channel] = static_cast<float>((1.0 - momentum) * running_var[channel] +
                                              momentum * (variance * n / (n - 1.0)));
  }
}

template <typename T, bool kResidual, bool kRelu>
__global__ void __launch_bounds__(kThreads, kBlocksAtOnce)
    apply_kernel(const T* __restrict__ x, const T* __restrict__ residual, int channels,
                 std::int64_t rows, int parts, const float* __restrict__ scales,
                 const float* __restrict__ shifts, T* __restrict__ y) {
  constexpr int kSize = Pack<T>::kSize;
  const Place<T> place(channels, rows, parts);
  if (!place.active) return;
  float scale[kSize], shift[kSize];
#pragma unroll
  for (int i = 0; i < kSize; ++i) {
    scale[i] = scales[blockIdx.z * channels + place.channel + i];
    shift[i] = shifts[blockIdx.z * channels + place.channel + i];
  }
  const std::int64_t base = place.first * channels + place.channel;
  constexpr int kUnroll = kResidual ? kFlight / 2 : kFlight;
  for (std::int64_t row = place.begin; row < place.end; row += kUnroll * kRowsAtOnce) {
    Pack<T> packs[kUnroll], adds[kUnroll];
#pragma unroll
    for (int u = 0; u < kUnroll; ++u) {
      const std::int64_t r = row + u * kRowsAtOnce;
      const std::int64_t at = base + (r < place.end ? r : place.begin) * channels;
      packs[u] = load(x + at);
      if (kResidual) adds[u] = load(residual + at);
    }
#pragma unroll
    for (int u = 0; u < kUnroll; ++u) {
      const std::int64_t r = row + u * kRowsAtOnce;
      if (r >= place.end) break;
      float values[kSize], add[kSize];
      packs[u].read(values);
      if (kResidual) adds[u].read(add);
#pragma unroll
      for (int i = 0; i < kSize; ++i) {
        values[i] = fmaf(values[i], scale[i], shift[i]);
        if (kResidual) values[i] += add[i];
        if (kRelu) values[i] = fmaxf(values[i], 0.0f);
      }
      store(y + base + r * channels, values);
    }
  }
}

// What the ReLU let through of the gradient.
enum class Mask : int { none, from_x, from_y };

// Sums of the gradient and of its products with x - mean. With kTwo the gradient is the sum of two.
template <typename T, Mask kMask, bool kWriteMasked, bool kTwo = false>
__global__ void __launch_bounds__(kThreads, kBlocksAtOnce)
    sum_gradients(const T* __restrict__ grad, const T* __restrict__ other, const T* __restrict__ x,
                  const T* __restrict__ y, int channels, std::int64_t rows, int parts,
                  Statistics statistics, T* __restrict__ masked, float* __restrict__ partial) {
  constexpr int kSize = Pack<T>::kSize;
  __shared__ float shared[kWarps * kLanes * kSize];
  const Place<T> place(channels, rows, parts);
  float sums[kSize] = {}, products[kSize] = {};
  if (place.active) {
    float mean[kSize], scale[kSize], shift[kSize];
    const int at_channel = blockIdx.z * channels + place.channel;
#pragma unroll
    for (int i = 0; i < kSize; ++i) {
      mean[i] = statistics.mean[at_channel + i];
      if (kMask == Mask::from_x) {
        scale[i] = statistics.scale[at_channel + i];
        shift[i] = statistics.shift[at_channel + i];
      }
    }
    const std::int64_t base = place.first * channels + place.channel;
    constexpr int kUnroll = kFlight / 2;
    for (std::int64_t row = place.begin; row < place.end; row += kUnroll * kRowsAtOnce) {
      Pack<T> grads[kUnroll], others[kUnroll], xs[kUnroll], ys[kUnroll];
#pragma unroll
      for (int u = 0; u < kUnroll; ++u) {
        const std::int64_t r = row + u * kRowsAtOnce;
        const std::int64_t at = base + (r < place.end ? r : place.begin) * channels;
        grads[u] = load(grad + at);
        if (kTwo) others[u] = load(other + at);
        xs[u] = load(x + at);
        if (kMask == Mask::from_y) ys[u] = load(y + at);
      }
#pragma unroll
      for (int u = 0; u < kUnroll; ++u) {
        const std::int64_t r = row + u * kRowsAtOnce;
        if (r >= place.end) break;
        float g[kSize], value[kSize], out[kSize];
        grads[u].read(g);
        if (kTwo) {
          float more[kSize];
          others[u].read(more);
#pragma unroll
          for (int i = 0; i < kSize; ++i) g[i] += more[i];
        }
        xs[u].read(value);
        if (kMask == Mask::from_y) ys[u].read(out);
#pragma unroll
        for (int i = 0; i < kSize; ++i) {
          if (kMask == Mask::from_x && !(fmaf(value[i], scale[i], shift[i]) > 0.0f)) g[i] = 0.0f;
          if (kMask == Mask::from_y && !(out[i] > 0.0f)) g[i] = 0.0f;
          sums[i] += g[i];
          products[i] += g[i] * (value[i] - mean[i]);
        }
        if (kWriteMasked) store(masked + base + r * channels, g);
      }
    }
  }
  const int tile = blockIdx.x * kLanes * kSize;
  float* out =
      partial + (blockIdx.z * static_cast<std::int64_t>(parts) + blockIdx.y) * channels + tile;
  add_rows<kSize>(sums, shared, out, channels - tile);
  add_rows<kSize>(products, shared, out + gridDim.z * static_cast<std::int64_t>(parts) * channels,
                  channels - tile);
}

// The gradient of x is a * g + b * x + c.
__global__ void finish_gradients(int views, int channels, std::int64_t rows, int parts,
                                 const float* partial, const float* gamma, Statistics statistics,
                                 float* coefficients, float* gamma_gradient, float* beta_gradient) {
  __shared__ double shared[kFinishParts][kFinishChannels];
  const int channel = blockIdx.x * kFinishChannels + threadIdx.x;
  const std::int64_t stride = static_cast<std::int64_t>(parts) * channels;
  const double n = static_cast<double>(rows);
  double for_gamma = 0, for_beta = 0;
  for (int view = 0; view < views; ++view) {
    const double sum = add_parts(partial + view * stride, parts, channels, channel, shared);
    const double products =
        add_parts(partial + (views + view) * stride, parts, channels, channel, shared);
    if (threadIdx.y != 0 || channel >= channels) continue;
    const int at = view * channels + channel;
    const double inverse = statistics.inverse[at];
    const double scale = inverse * (gamma ? gamma[channel] : 1.0f);
    coefficients[at] = static_cast<float>(scale);
    coefficients[views * channels + at] =
        static_cast<float>(-scale * inverse * inverse * products / n);
    coefficients[2 * views * channels + at] =
        static_cast<float>(scale / n * (inverse * inverse * products * statistics.mean[at] - sum));
    for_gamma += products * inverse;
    for_beta += sum;
  }
  if (gamma_gradient && threadIdx.y == 0 && channel < channels) {
    gamma_gradient[channel] = static_cast<float>(for_gamma);
    beta_gradient[channel] = static_cast<float>(for_beta);
  }
}

template <typename T, Mask kMask>
__global__ void __launch_bounds__(kThreads, kBlocksAtOnce)
    apply_gradient(const T* __restrict__ grad, const T* __restrict__ x, const T* __restrict__ y,
                   int channels, std::int64_t rows, int parts, Statistics statistics,
                   const float* __restrict__ coefficients, T* __restrict__ out) {
  constexpr int kSize = Pack<T>::kSize;
  const Place<T> place(channels, rows, parts);
  if (!place.active) return;
  float scale[kSize], shift[kSize], a[kSize], b[kSize], c[kSize];
  const int at_channel = blockIdx.z * channels + place.channel;
  const int plane = gridDim.z * channels;
#pragma unroll
  for (int i = 0; i < kSize; ++i) {
    a[i] = coefficients[at_channel + i];
    b[i] = coefficients[plane + at_channel + i];
    c[i] = coefficients[2 * plane + at_channel + i];
    if (kMask == Mask::from_x) {
      scale[i] = statistics.scale[at_channel + i];
      shift[i] = statistics.shift[at_channel + i];
    }
  }
  const std::int64_t base = place.first * channels + place.channel;
  constexpr int kAtOnce = kMask == Mask::from_x ? 1 : kFlight / 2;  // as the registers allow
  for (std::int64_t row = place.begin; row < place.end; row += kAtOnce * kRowsAtOnce) {
    Pack<T> grads[kAtOnce], xs[kAtOnce], ys[kAtOnce];
#pragma unroll
    for (int u = 0; u < kAtOnce; ++u) {
      const std::int64_t r = row + u * kRowsAtOnce;
      const std::int64_t at = base + (r < place.end ? r : place.begin) * channels;
      grads[u] = load(grad + at);
      xs[u] = load(x + at);
      if (kMask == Mask::from_y) ys[u] = load(y + at);
    }
#pragma unroll
    for (int u = 0; u < kAtOnce; ++u) {
      const std::int64_t r = row + u * kRowsAtOnce;
      if (r >= place.end) break;
      float g[kSize], value[kSize], above[kSize];
      grads[u].read(g);
      xs[u].read(value);
      if (kMask == Mask::from_y) ys[u].read(above);
#pragma unroll
      for (int i = 0; i < kSize; ++i) {
        if (kMask == Mask::from_x && !(fmaf(value[i], scale[i], shift[i]) > 0.0f)) g[i] = 0.0f;
        if (kMask == Mask::from_y && !(above[i] > 0.0f)) g[i] = 0.0f;
        g[i] = fmaf(a[i], g[i], fmaf(b[i], value[i], c[i]));
      }
      store(out + base + r * channels, g);
    }
  }
}

int multiprocessors() {
  static const int count = [] {
    int device = 0, found = 1;
    cudaGetDevice(&device);
    cudaDeviceGetAttribute(&found, cudaDevAttrMultiProcessorCount, device);
    return found;
  }();
  return count;
}

int tiles_of(const Shape& shape) {
  const int tile = kLanes * group_of(shape.number);
  return (shape.channels + tile - 1) / tile;
}

dim3 grid_of(const Shape& shape) {
  return dim3(static_cast<unsigned>(tiles_of(shape)), static_cast<unsigned>(parts_of(shape)),
              static_cast<unsigned>(shape.views));
}

dim3 finish_grid(const Shape& shape) {
  return dim3(static_cast<unsigned>((shape.channels + kFinishChannels - 1) / kFinishChannels));
}

constexpr dim3 finish_threads() { return dim3(kFinishChannels, kFinishParts); }

// Calls run(T()) with the type of the numbers.
template <typename Run>
void for_number(Number number, const Run& run) {
  if (number == Number::float32) {
    run(float());
  } else {
    run(__nv_bfloat16());
  }
}

}  // namespace

int parts_of(const Shape& shape) {
  const int wanted = kBlocksAtOnce * multiprocessors() / (tiles_of(shape) * shape.views);
  const std::int64_t useful = (shape.rows + kRowsAtOnce - 1) / kRowsAtOnce;
  return static_cast<int>(std::clamp<std::int64_t>(wanted, 1, useful));
}

cudaError_t statistics(const Shape& shape, const void* x, const float* gamma, const float* beta,
                       float momentum, float epsilon, float* running_mean, float* running_var,
                       float* partial_sums, const Statistics& out, cudaStream_t stream) {
  for_number(shape.number, [&](auto number) {
    using T = decltype(number);
    const auto* from = static_cast<const T*>(x);
    const int parts = parts_of(shape);
    sum_moments<T><<<grid_of(shape), kThreads, 0, stream>>>(from, shape.channels, shape.rows, parts,
                                                            partial_sums);
    finish_statistics<T><<<finish_grid(shape), finish_threads(), 0, stream>>>(
        from, shape.views, shape.channels, shape.rows, parts, partial_sums, gamma, beta, momentum,
        epsilon, running_mean, running_var, out);
  });
  return cudaGetLastError();
}

cudaError_t apply(const Shape& shape, const void* x, const void* residual, const float* scale,
                  const float* shift, bool relu, void* y, cudaStream_t stream) {
  for_number(shape.number, [&](auto number) {
    using T = decltype(number);
    const auto launch = [&](auto kernel) {
      kernel<<<grid_of(shape), kThreads, 0, stream>>>(
          static_cast<const T*>(x), static_cast<const T*>(residual), shape.channels, shape.rows,
          parts_of(shape), scale, shift, static_cast<T*>(y));
    };
    if (residual) {
      relu ? launch(apply_kernel<T, true, true>) : launch(apply_kernel<T, true, false>);
    } else {
      relu ? launch(apply_kernel<T, false, true>) : launch(apply_kernel<T, false, false>);
    }
  });
  return cudaGetLastError();
}

cudaError_t gradient_sums(const Shape& shape, const void* grad, const void* other, const void* x,
                          const void* y, bool relu, std::int64_t population, const float* gamma,
                          const Statistics& statistics, float* partial_sums, const Sums& out,
                          cudaStream_t stream) {
  for_number(shape.number, [&](auto number) {
    using T = decltype(number);
    const int parts = parts_of(shape);
    const auto sum = [&](auto kernel) {
      kernel<<<grid_of(shape), kThreads, 0, stream>>>(
          static_cast<const T*>(grad), static_cast<const T*>(other), static_cast<const T*>(x),
          static_cast<const T*>(y), shape.channels, shape.rows, parts, statistics,
          static_cast<T*>(out.masked), partial_sums);
    };
    if (!relu) {
      sum(sum_gradients<T, Mask::none, false>);
    } else if (!y) {
      out.masked ? sum(sum_gradients<T, Mask::from_x, true>)
                 : sum(sum_gradients<T, Mask::from_x, false>);
    } else if (other) {
      sum(sum_gradients<T, Mask::from_y, true, true>);
    } else {
      out.masked ? sum(sum_gradients<T, Mask::from_y, true>)
                 : sum(sum_gradients<T, Mask::from_y, false>);
    }
    finish_gradients<<<finish_grid(shape), finish_threads(), 0, stream>>>(
        shape.views, shape.channels, population, parts, partial_sums, gamma, statistics,
        out.coefficients, out.gamma, out.beta);
  });
  return cudaGetLastError();
}

cudaError_t apply_gradients(const Shape& shape, const void* grad, const void* x, const void* y,
                            bool relu, const Statistics& statistics, const float* coefficients,
                            void* out, cudaStream_t stream) {
  for_number(shape.number, [&](auto number) {
    using T = decltype(number);
    const auto apply = [&](auto kernel) {
      kernel<<<grid_of(shape), kThreads, 0, stream>>>(
          static_cast<const T*>(grad), static_cast<const T*>(x), static_cast<const T*>(y),
          shape.channels, shape.rows, parts_of(shape), statistics, coefficients,
          static_cast<T*>(out));
    };
    if (!relu) {
      apply(apply_gradient<T, Mask::none>);
    } else {
      y ? apply(apply_gradient<T, Mask::from_y>) : apply(apply_gradient<T, Mask::from_x>);
    }
  });
  return cudaGetLastError();
}

}  // namespace riffle::batch_norm_cuda

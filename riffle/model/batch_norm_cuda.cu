#include <algorithm>

#include "riffle/model/batch_norm_tiles.cuh"

namespace riffle::batch_norm_cuda {
namespace {

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
    const double mean = static_cast<float>(x[view * rows * channels + channel]) + offset;
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

int multiprocessors() {
  static const int count = [] {
    int device = 0, found = 1;
    cudaGetDevice(&device);
    cudaDeviceGetAttribute(&found, cudaDevAttrMultiProcessorCount, device);
    return found;
  }();
  return count;
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

}  // namespace riffle::batch_norm_cuda

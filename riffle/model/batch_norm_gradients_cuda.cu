#include "riffle/model/batch_norm_tiles.cuh"

namespace riffle::batch_norm_cuda {
namespace {

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

}  // namespace

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

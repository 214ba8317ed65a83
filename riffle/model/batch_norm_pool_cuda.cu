#include "riffle/model/batch_norm_pool_cuda.h"
#include "riffle/model/pack.cuh"

namespace riffle::batch_norm_cuda {
namespace {

using Number16 = __nv_bfloat16;

constexpr int kSize = Pack<Number16>::kSize;
constexpr int kThreads = 256;
constexpr std::uint8_t kNone = 9;

// A thread has eight channels of one pixel. x runs over (column, channels) of a row, y over the
// rows of all pictures.
struct Place {
  int column, channel;
  bool active;
  __device__ Place(int columns, int channels) {
    const int lanes = channels / kSize;
    const int i = static_cast<int>(blockIdx.x) * kThreads + static_cast<int>(threadIdx.x);
    column = i / lanes;
    channel = i % lanes * kSize;
    active = column < columns;
  }
};

__device__ void load_floats(const float* from, float* out) {
  const float4 a = *reinterpret_cast<const float4*>(from);
  const float4 b = *reinterpret_cast<const float4*>(from + 4);
  out[0] = a.x, out[1] = a.y, out[2] = a.z, out[3] = a.w;
  out[4] = b.x, out[5] = b.y, out[6] = b.z, out[7] = b.w;
}

template <bool kTraining>
__global__ void __launch_bounds__(kThreads)
    pool_kernel(PoolShape shape, const Number16* __restrict__ x, const float* __restrict__ scales,
                const float* __restrict__ shifts, Number16* __restrict__ y,
                Number16* __restrict__ largest, std::uint8_t* __restrict__ where) {
  const Place place(shape.pooled_width, shape.channels);
  if (!place.active) return;
  const int row = static_cast<int>(blockIdx.y);
  const std::int64_t picture = blockIdx.z;
  const std::int64_t view = picture / shape.pictures;
  float scale[kSize], shift[kSize];
  load_floats(scales + view * shape.channels + place.channel, scale);
  load_floats(shifts + view * shape.channels + place.channel, shift);

  const int top = 2 * row - 1, left = 2 * place.column - 1;
  const Number16* base = x + picture * shape.height * shape.width * shape.channels + place.channel;
  Pack<Number16> packs[9];
#pragma unroll
  for (int k = 0; k < 9; ++k) {
    // A pixel outside stands for its nearest inside, which the window holds too.
    const int r = min(max(top + k / 3, 0), shape.height - 1);
    const int c = min(max(left + k % 3, 0), shape.width - 1);
    packs[k] = load(base + (static_cast<std::int64_t>(r) * shape.width + c) * shape.channels);
  }
  float best[kSize], best_x[kSize];
  int at[kSize];
#pragma unroll
  for (int i = 0; i < kSize; ++i) best[i] = 0.0f, best_x[i] = 0.0f, at[i] = kNone;
#pragma unroll
  for (int k = 0; k < 9; ++k) {
    const int r = top + k / 3, c = left + k % 3;
    if (r < 0 || r >= shape.height || c < 0 || c >= shape.width) continue;
    float values[kSize];
    packs[k].read(values);
#pragma unroll
    for (int i = 0; i < kSize; ++i) {
      const float value = fmaf(values[i], scale[i], shift[i]);
      // Where none is above 0 the last one stands for them all: its gradient is 0 either way.
      if (value > best[i]) best[i] = value, at[i] = k, best_x[i] = values[i];
      if (kTraining && at[i] == kNone) best_x[i] = values[i];
    }
  }
  const std::int64_t out =
      ((picture * shape.pooled_height + row) * shape.pooled_width + place.column) * shape.channels +
      place.channel;
  store(y + out, best);
  if (kTraining) {
    store(largest + out, best_x);
    unsigned words[2] = {};
#pragma unroll
    for (int i = 0; i < kSize; ++i) words[i / 4] |= static_cast<unsigned>(at[i]) << (8 * (i % 4));
    *reinterpret_cast<uint2*>(where + out) = make_uint2(words[0], words[1]);
  }
}

__global__ void __launch_bounds__(kThreads)
    pool_gradient_kernel(PoolShape shape, const Number16* __restrict__ grad,
                         const std::uint8_t* __restrict__ where, const Number16* __restrict__ x,
                         const float* __restrict__ coefficients, Number16* __restrict__ out) {
  const Place place(shape.width, shape.channels);
  if (!place.active) return;
  const int row = static_cast<int>(blockIdx.y);
  const std::int64_t picture = blockIdx.z;
  const int view = static_cast<int>(picture / shape.pictures);
  const std::int64_t at =
      ((picture * shape.height + row) * shape.width + place.column) * shape.channels +
      place.channel;
  float values[kSize];
  load(x + at).read(values);

  // The windows whose middle row is the pixel's own or next to it, and likewise their columns.
  float g[kSize] = {};
  const int first_row = row / 2, last_row = (row + 1) / 2;
  const int first_column = place.column / 2, last_column = (place.column + 1) / 2;
#pragma unroll
  for (int i = 0; i < 2; ++i) {
#pragma unroll
    for (int j = 0; j < 2; ++j) {
      const int r = first_row + i, c = first_column + j;
      if (r > last_row || c > last_column || r >= shape.pooled_height || c >= shape.pooled_width) {
        continue;
      }
      const std::int64_t from =
          ((picture * shape.pooled_height + r) * shape.pooled_width + c) * shape.channels +
          place.channel;
      const unsigned here =
          static_cast<unsigned>((row - (2 * r - 1)) * 3 + place.column - (2 * c - 1));
      const uint2 words = *reinterpret_cast<const uint2*>(where + from);
      float values_there[kSize];
      load(grad + from).read(values_there);
#pragma unroll
      for (int k = 0; k < kSize; ++k) {
        const unsigned word = k < 4 ? words.x : words.y;
        if (((word >> (8 * (k % 4))) & 0xFFu) == here) g[k] += values_there[k];
      }
    }
  }

  float a[kSize], b[kSize], c[kSize];
  const int at_channel = view * shape.channels + place.channel;
  const int plane = shape.views * shape.channels;
  load_floats(coefficients + at_channel, a);
  load_floats(coefficients + plane + at_channel, b);
  load_floats(coefficients + 2 * plane + at_channel, c);
#pragma unroll
  for (int k = 0; k < kSize; ++k) {
    g[k] = fmaf(a[k], g[k], fmaf(b[k], values[k], c[k]));
  }
  store(out + at, g);
}

dim3 grid_of(const PoolShape& shape, int rows, int columns) {
  const int lanes = columns * (shape.channels / kSize);
  return dim3(static_cast<unsigned>((lanes + kThreads - 1) / kThreads), static_cast<unsigned>(rows),
              static_cast<unsigned>(shape.views * shape.pictures));
}

}  // namespace

cudaError_t pool(const PoolShape& shape, const void* x, const float* scale, const float* shift,
                 void* y, void* largest, std::uint8_t* where, cudaStream_t stream) {
  const dim3 grid = grid_of(shape, shape.pooled_height, shape.pooled_width);
  const auto launch = [&](auto kernel) {
    kernel<<<grid, kThreads, 0, stream>>>(shape, static_cast<const Number16*>(x), scale, shift,
                                          static_cast<Number16*>(y),
                                          static_cast<Number16*>(largest), where);
  };
  where ? launch(pool_kernel<true>) : launch(pool_kernel<false>);
  return cudaGetLastError();
}

cudaError_t pool_gradient(const PoolShape& shape, const void* grad, const std::uint8_t* where,
                          const void* x, const float* coefficients, void* out,
                          cudaStream_t stream) {
  const dim3 grid = grid_of(shape, shape.height, shape.width);
  pool_gradient_kernel<<<grid, kThreads, 0, stream>>>(shape, static_cast<const Number16*>(grad),
                                                      where, static_cast<const Number16*>(x),
                                                      coefficients, static_cast<Number16*>(out));
  return cudaGetLastError();
}

}  // namespace riffle::batch_norm_cuda

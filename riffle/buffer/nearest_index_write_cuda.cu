// Rows come, move and go.
#include <cmath>

#include "riffle/buffer/nearest_index.cuh"

namespace riffle::nearest_index_cuda {
namespace {

__device__ int warp_of_grid() { return blockIdx.x * kWarps + threadIdx.x / kWarp; }
__device__ int lane() { return threadIdx.x % kWarp; }

// dot64() of a row that need not be padded with itself.
__device__ double warp_square(const float* values, int dim) {
  double even = 0, odd = 0;
  for (int i = 2 * lane(); i < dim; i += 2 * kWarp) {
    const double x = values[i];
    const double y = i + 1 < dim ? values[i + 1] : 0.0f;
    even = __fma_rn(x, x, even);
    odd = __fma_rn(y, y, odd);
  }
  return fold(even, odd);
}

// Each lane touches the same two numbers of every 64, here and in warp_square, so lanes need not
// wait for one another.
template <typename Each>
__device__ void for_own_numbers(int dim, const Each& each) {
  for (int i = 2 * lane(); i < dim; i += 2 * kWarp) {
    each(i);
    if (i + 1 < dim) each(i + 1);
  }
}

__device__ float stored_number(const float* row, int i) { return row[i]; }
__device__ float stored_number(const __half* row, int i) { return __half2float(row[i]); }
__device__ float stored_number(const __nv_bfloat16* row, int i) { return __bfloat162float(row[i]); }

template <typename T>
__global__ void prepare_kernel(View view, const T* rows, const float* features,
                               const long long* slots, int count, double momentum, float* fresh) {
  const int r = warp_of_grid();
  if (r >= count) return;
  const float* feature = features + static_cast<long long>(r) * view.dim;
  float* out = fresh + static_cast<long long>(r) * view.dim;
  const double square = warp_square(feature, view.dim);
  if (!isfinite(square) || square == 0.0) {
    if (lane() == 0) atomicMin(&view.words[kBadRow], r);
    return;
  }
  const double inverse = inverse_root(square);
  const long long slot = slots[r];
  if (momentum > 0.0 && view.changed[slot] != 0) {
    const T* old = rows + slot * view.stride;
    for_own_numbers(view.dim, [&](int i) {
      const double past = __dmul_rn(momentum, static_cast<double>(stored_number(old, i)));
      const double now = __dmul_rn(1.0 - momentum, __dmul_rn(feature[i], inverse));
      out[i] = static_cast<float>(__dadd_rn(past, now));
    });
    const double blended = warp_square(out, view.dim);
    if (blended > kCancelled) {
      const double shorten = inverse_root(blended);
      for_own_numbers(view.dim, [&](int i) {
        out[i] = static_cast<float>(__dmul_rn(static_cast<double>(out[i]), shorten));
      });
      return;
    }
  }
  for_own_numbers(view.dim, [&](int i) {
    out[i] = static_cast<float>(__dmul_rn(static_cast<double>(feature[i]), inverse));
  });
}

template <typename T>
__global__ void commit_kernel(View view, T* rows, const float* fresh, const long long* slots,
                              const unsigned long long* ages, const double* weights, int count,
                              unsigned long long first) {
  const int r = warp_of_grid();
  if (r >= count) return;
  const int bad = view.words[kBadRow];
  if (bad < count) {
    if (r == 0 && lane() == 0 && view.words[kRefused] < 0) {
      view.words[kRefused] = static_cast<int>(slots[bad]);
    }
    return;
  }
  const long long slot = slots[r];
  const float* values = fresh + static_cast<long long>(r) * view.dim;
  T* row = rows + slot * view.stride;
  for (int i = 2 * lane(); i < view.stride; i += 2 * kWarp) {
    const float x = i < view.dim ? values[i] : 0.0f;
    const float y = i + 1 < view.dim ? values[i + 1] : 0.0f;
    store2(row + i, make_float2(x, y));
  }
  const double square = warp_dot(row, row, view.stride);
  if (lane() == 0) {
    view.inverse_norms[slot] = inverse_root(square);
    view.scales[slot] = nanf("");
    view.changed[slot] = first + r;
    view.ages[slot] = ages[r];
    if (weights != nullptr) {
      view.weights[slot] = weights[r];
      set_inverse_weight(view, slot);
    }
  }
}

__global__ void forget_kernel(View view, const long long* slots, int count) {
  const int r = blockIdx.x * kThreads + threadIdx.x;
  if (r >= count) return;
  view.changed[slots[r]] = 0;
  view.scales[slots[r]] = nanf("");
}

template <typename T>
__global__ void measure_kernel(View view, const T* rows) {
  const int slot = warp_of_grid();
  if (slot >= view.slots) return;
  const T* row = rows + static_cast<long long>(slot) * view.stride;
  const double square = warp_dot(row, row, view.stride);
  if (lane() != 0) return;
  const bool present = view.changed[slot] != 0;
  view.inverse_norms[slot] = present ? inverse_root(square) : 0.0;
  view.scales[slot] = present ? static_cast<float>(view.inverse_norms[slot]) : nanf("");
  set_inverse_weight(view, slot);
}

__global__ void gather_scales_kernel(View view, const int* slots, int count, int padded,
                                     float* scales, float* inverse_weights) {
  const int r = blockIdx.x * kThreads + threadIdx.x;
  if (r >= padded) return;
  const bool present = r < count && view.changed[slots[r]] != 0;
  scales[r] = present ? static_cast<float>(view.inverse_norms[slots[r]]) : nanf("");
  const bool weighted = present && view.quarters != kUnweighted;
  inverse_weights[r] = weighted ? view.inverse_weights[slots[r]] : 1.0f;
}

__global__ void show_kernel(View view, const int* slots, int count) {
  const int r = blockIdx.x * kThreads + threadIdx.x;
  if (r >= count) return;
  const int slot = slots[r];
  view.scales[slot] =
      view.changed[slot] != 0 ? static_cast<float>(view.inverse_norms[slot]) : nanf("");
}

}  // namespace

cudaError_t write_rows(const View& view, const float* features, const long long* slots,
                       const unsigned long long* ages, const double* weights, int count,
                       double momentum, unsigned long long first, float* fresh,
                       cudaStream_t stream) {
  const cudaError_t reset = cudaMemsetAsync(view.words + kBadRow, 0x7F, sizeof(int), stream);
  if (reset != cudaSuccess) return reset;
  const int blocks = blocks_for(count, kWarps);
  return with_rows(view, [&](auto* rows) {
    prepare_kernel<<<blocks, kThreads, 0, stream>>>(view, rows, features, slots, count, momentum,
                                                    fresh);
    commit_kernel<<<blocks, kThreads, 0, stream>>>(view, rows, fresh, slots, ages, weights, count,
                                                   first);
  });
}

cudaError_t forget_rows(const View& view, const long long* slots, int count, cudaStream_t stream) {
  forget_kernel<<<blocks_for(count, kThreads), kThreads, 0, stream>>>(view, slots, count);
  return cudaGetLastError();
}

cudaError_t measure_rows(const View& view, cudaStream_t stream) {
  return with_rows(view, [&](auto* rows) {
    measure_kernel<<<blocks_for(view.slots, kWarps), kThreads, 0, stream>>>(view, rows);
  });
}

cudaError_t gather_scales(const View& view, const int* slots, int count, int padded, float* scales,
                          float* inverse_weights, cudaStream_t stream) {
  gather_scales_kernel<<<blocks_for(padded, kThreads), kThreads, 0, stream>>>(
      view, slots, count, padded, scales, inverse_weights);
  return cudaGetLastError();
}

cudaError_t show_rows(const View& view, const int* slots, int count, cudaStream_t stream) {
  show_kernel<<<blocks_for(count, kThreads), kThreads, 0, stream>>>(view, slots, count);
  return cudaGetLastError();
}

}  // namespace riffle::nearest_index_cuda

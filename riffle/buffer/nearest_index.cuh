// What the kernels of the nearest-neighbour index share: rows of any storage type, and float64
// distances with the same bits as on the CPU (nearest_distance.h).
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include "riffle/buffer/merge_cost.h"
#include "riffle/buffer/nearest_index_cuda.h"
#include "riffle/tensors/kernels_cuda.h"

namespace riffle::nearest_index_cuda {

constexpr unsigned kAll = 0xFFFFFFFFu;
constexpr int kThreads = 256;
constexpr int kWarps = kThreads / kWarp;

__device__ inline float2 load2(const float* from) { return *reinterpret_cast<const float2*>(from); }
__device__ inline float2 load2(const __half* from) {
  return __half22float2(*reinterpret_cast<const __half2*>(from));
}
__device__ inline float2 load2(const __nv_bfloat16* from) {
  return __bfloat1622float2(*reinterpret_cast<const __nv_bfloat162*>(from));
}

__device__ inline void store2(float* to, float2 value) { *reinterpret_cast<float2*>(to) = value; }
__device__ inline void store2(__half* to, float2 value) {
  *reinterpret_cast<__half2*>(to) = __floats2half2_rn(value.x, value.y);
}
__device__ inline void store2(__nv_bfloat16* to, float2 value) {
  *reinterpret_cast<__nv_bfloat162*>(to) = __floats2bfloat162_rn(value.x, value.y);
}

// The two partial sums of each lane, folded as in dot64().
__device__ inline double fold(double even, double odd) {
  double sum = __dadd_rn(even, odd);
  for (int width = kWarp / 2; width > 0; width /= 2) {
    sum = __dadd_rn(sum, __shfl_xor_sync(kAll, sum, width));
  }
  return sum;
}

// dot64() of two stored rows by one warp, the result in every lane.
template <typename T>
__device__ double warp_dot(const T* a, const T* b, int stride) {
  double even = 0, odd = 0;
#pragma unroll 4
  for (int i = 2 * (threadIdx.x % kWarp); i < stride; i += 2 * kWarp) {
    const float2 x = load2(a + i);
    const float2 y = load2(b + i);
    even = __fma_rn(static_cast<double>(x.x), static_cast<double>(y.x), even);
    odd = __fma_rn(static_cast<double>(x.y), static_cast<double>(y.y), odd);
  }
  return fold(even, odd);
}

__device__ inline double inverse_root(double square) { return __ddiv_rn(1.0, __dsqrt_rn(square)); }

__device__ inline unsigned distance_key(double dot, double inverse_norms) {
  const double distance = fmin(fmax(__dsub_rn(1.0, __dmul_rn(dot, inverse_norms)), 0.0), 2.0);
  return static_cast<unsigned>(__dadd_rn(__dmul_rn(distance, kKeysPerUnit), 0.5));
}

__device__ inline double merge_factor(const View& view, int a, int b) {
  return riffle::merge_factor(view.weights[a], view.weights[b], view.quarters);
}

// The order of two rows by what merging them costs: the distance itself without weights.
__device__ inline unsigned cost_key(const View& view, unsigned distance, int a, int b) {
  if (view.quarters == kUnweighted) return distance;
  const double counted = counted_distance(static_cast<double>(distance), view.reach);
  return __float_as_uint(__double2float_rn(__dmul_rn(counted, merge_factor(view, a, b))));
}

__device__ inline void set_inverse_weight(const View& view, long long slot) {
  if (view.quarters != kUnweighted) {
    view.inverse_weights[slot] = static_cast<float>(__ddiv_rn(1.0, view.weights[slot]));
  }
}

// Lexicographic order of (key, change): which pair of one row, or which of two rows, comes first.
__device__ inline bool comes_before(unsigned key_a, unsigned long long change_a, unsigned key_b,
                                    unsigned long long change_b) {
  return key_a != key_b ? key_a < key_b : change_a < change_b;
}

__device__ inline bool owns(const View& view, unsigned long long owner_change, int other) {
  const unsigned long long change = view.changed[other];
  return change != 0 && change < owner_change;
}

// Calls work(pointer to rows of the storage type).
template <typename Work>
cudaError_t with_rows(const View& view, const Work& work) {
  switch (view.type) {
    case Stored::float32:
      work(static_cast<float*>(view.rows));
      break;
    case Stored::float16:
      work(static_cast<__half*>(view.rows));
      break;
    case Stored::bfloat16:
      work(static_cast<__nv_bfloat16*>(view.rows));
      break;
  }
  return cudaGetLastError();
}

constexpr int blocks_for(long long turns, int per_block) {
  return static_cast<int>((turns + per_block - 1) / per_block);
}

}  // namespace riffle::nearest_index_cuda

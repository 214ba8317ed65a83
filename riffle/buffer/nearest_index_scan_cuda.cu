// Changed rows find their nearest: the largest of each row of a product, then a float64 look at
// those.
#include <cmath>

#include "riffle/buffer/nearest_index.cuh"

namespace riffle::nearest_index_cuda {
namespace {

constexpr int kRowsPerBlock = kWarps;  // a warp picks the largest of one row
constexpr int kVector = 4;
constexpr int kLoads = kPart / (kThreads * kVector);  // vectors of a row that one thread reads
constexpr int kOwn = kLoads * kVector;                // numbers of a row that one thread reads
static_assert(kOwn <= 16, "a thread's numbers are marked in 16 bits and fit in half a warp");

// Floats as unsigned numbers of the same order; NaN must not get here.
__device__ unsigned ordered(float value) {
  const unsigned bits = __float_as_uint(value);
  return bits ^ (bits >> 31 != 0 ? 0xFFFFFFFFu : 0x80000000u);
}
__device__ float unordered(unsigned bits) {
  return __uint_as_float(bits ^ (bits >> 31 != 0 ? 0x80000000u : 0xFFFFFFFFu));
}

__device__ int visible(const Block& block, int row) {
  const long long last = block.first_row_columns + row;
  return last < block.columns ? static_cast<int>(last) : block.columns;
}

// What similarities have in common for one changed row. kWeighted: as merge_values() on the CPU.
template <bool kWeighted>
struct RowSide {
  float scale;
  float inverse_weight;

  __device__ float similarity(float product, float column_scale, float column_inverse_weight,
                              float ceiling, const View& view) const {
    if (!kWeighted) return product * column_scale;
    const float nearness = product * scale * column_scale - ceiling;
    const float damping = 1.0f - nearness * view.inverse_reach;
    const float sum = inverse_weight + column_inverse_weight;
    if (view.quarters == 4) return __fdividef(nearness, damping * sum);
    const float counted = __fdividef(nearness, damping);
    const float root = rsqrtf(sum);
    if (view.quarters == 2) return counted * root;
    if (view.quarters == 0) return counted;
    return counted * sqrtf(root) * (view.quarters == 3 ? root : 1.0f);
  }
};

// The column of a thread's number: vectors are dealt out in turn, so that a warp reads 512 bytes in
// a row.
__device__ int column_of(int thread, int number) {
  return (number / kVector * kThreads + thread) * kVector + number % kVector;
}

// kWhole: every row sees every column.
template <bool kWhole, bool kWeighted>
__global__ void __launch_bounds__(kThreads)
    find_nearest_kernel(View view, Block block, Found found, int first_part) {
  __shared__ unsigned largest[kRowsPerBlock][kThreads];
  __shared__ unsigned short used[kRowsPerBlock][kThreads];
  const int first_row = blockIdx.x * kRowsPerBlock;
  const int first_column = blockIdx.y * kPart;
  const int thread = threadIdx.x;

  __shared__ RowSide<kWeighted> sides[kRowsPerBlock];
  const float ceiling = static_cast<float>(1.0 - view.rounding);
  if (kWeighted) {
    if (thread < kRowsPerBlock) {
      const int slot = block.row_slots[min(first_row + thread, block.rows - 1)];
      sides[thread] = {static_cast<float>(view.inverse_norms[slot]), view.inverse_weights[slot]};
    }
    __syncthreads();
  }

  float own[kRowsPerBlock];
  int seen[kRowsPerBlock];
  const float* from[kRowsPerBlock];
#pragma unroll
  for (int r = 0; r < kRowsPerBlock; ++r) {
    const int row = min(first_row + r, block.rows - 1);
    own[r] = -INFINITY;
    seen[r] = visible(block, row);
    from[r] = block.products + static_cast<long long>(row) * block.columns;
  }
#pragma unroll
  for (int load = 0; load < kLoads; ++load) {
    const int column = first_column + column_of(thread, load * kVector);
    if (column >= block.columns) continue;
    const float4 s = *reinterpret_cast<const float4*>(block.scales + column);
    float4 u{};
    if (kWeighted) u = *reinterpret_cast<const float4*>(block.inverse_weights + column);
    float4 p[kRowsPerBlock];
#pragma unroll
    for (int r = 0; r < kRowsPerBlock; ++r)
      p[r] = *reinterpret_cast<const float4*>(from[r] + column);
#pragma unroll
    for (int r = 0; r < kRowsPerBlock; ++r) {
      const RowSide<kWeighted> row = sides[r];
      const auto offer = [&](int at, float product, float scale, float inverse_weight) {
        if (!kWhole && at >= seen[r]) return;
        // fmaxf passes over NaN.
        own[r] = fmaxf(own[r], row.similarity(product, scale, inverse_weight, ceiling, view));
      };
      offer(column, p[r].x, s.x, u.x);
      offer(column + 1, p[r].y, s.y, u.y);
      offer(column + 2, p[r].z, s.z, u.z);
      offer(column + 3, p[r].w, s.w, u.w);
    }
  }
#pragma unroll
  for (int r = 0; r < kRowsPerBlock; ++r) {
    largest[r][thread] = ordered(own[r]);
    used[r][thread] = 0;
  }
  __syncthreads();

  const int mine = thread / kWarp;
  const int lane = thread % kWarp;
  const int row = first_row + mine;
  if (row >= block.rows) return;
  const int columns_seen = visible(block, row);
  const RowSide<kWeighted> side = sides[mine];
  // -infinity where there is nothing to see.
  const auto similarity = [&](int column) {
    if (column >= columns_seen) return -INFINITY;
    const float product = block.products[static_cast<long long>(row) * block.columns + column];
    const float value =
        side.similarity(product, block.scales[column],
                        kWeighted ? block.inverse_weights[column] : 0.0f, ceiling, view);
    return isnan(value) ? -INFINITY : value;
  };
  const int neighbours = view.neighbours;
  const unsigned nothing = ordered(-INFINITY);
  const long long out =
      (static_cast<long long>(row) * found.parts + first_part + blockIdx.y) * neighbours;
  for (int e = 0; e < neighbours; ++e) {
    unsigned best = nothing;
    int owner = lane;
#pragma unroll
    for (int i = 0; i < kThreads; i += kWarp) {
      const unsigned value = largest[mine][lane + i];
      if (value > best) {
        best = value;
        owner = lane + i;
      }
    }
    const unsigned top = __reduce_max_sync(kAll, best);
    if (top == nothing) {
      if (lane == 0) {
        found.similarities[out + e] = -INFINITY;
        found.slots[out + e] = -1;
      }
      continue;
    }
    owner = __shfl_sync(kAll, owner, __ffs(__ballot_sync(kAll, best == top)) - 1);
    // The owner's numbers again, one a lane: which of them it was, and which comes next.
    const int column = first_column + column_of(owner, lane % kOwn);
    unsigned value = nothing;
    if (lane < kOwn && (used[mine][owner] >> lane & 1) == 0) {
      value = ordered(similarity(column));
    }
    const int chosen = __ffs(__ballot_sync(kAll, value == top)) - 1;
    if (lane == chosen) {
      found.similarities[out + e] = unordered(top);
      found.slots[out + e] =
          block.column_slots != nullptr ? block.column_slots[column] : block.first_slot + column;
      value = nothing;
    }
    const unsigned next = __reduce_max_sync(kAll, value);
    __syncwarp();
    if (lane == 0) {
      largest[mine][owner] = next;
      used[mine][owner] = static_cast<unsigned short>(used[mine][owner] | 1u << chosen);
    }
    __syncwarp();
  }
}

struct Entry {
  unsigned key;
  int slot;
  unsigned long long change;
};

// The `neighbours` largest of all parts, in `similarities` and `slots`; returns how many there are.
__device__ int merge(const Found& found, int row, int neighbours, float* similarities, int* slots) {
  __shared__ unsigned warp_best[kWarps];
  __shared__ int warp_where[kWarps];
  const int total = found.parts * neighbours;
  float* all = found.similarities + static_cast<long long>(row) * total;
  const int* all_slots = found.slots + static_cast<long long>(row) * total;
  const unsigned nothing = ordered(-INFINITY);
  int count = 0;
  for (; count < neighbours; ++count) {
    unsigned best = nothing;
    int where = -1;
    for (int i = threadIdx.x; i < total; i += kThreads) {
      const unsigned value = ordered(all[i]);
      if (value > best) {
        best = value;
        where = i;
      }
    }
    const unsigned top = __reduce_max_sync(kAll, best);
    const int lane_of_top = __ffs(__ballot_sync(kAll, best == top)) - 1;
    where = __shfl_sync(kAll, where, lane_of_top);
    if (threadIdx.x % kWarp == 0) {
      warp_best[threadIdx.x / kWarp] = top;
      warp_where[threadIdx.x / kWarp] = where;
    }
    __syncthreads();
    best = nothing;
    for (int w = 0; w < kWarps; ++w) {
      if (warp_best[w] > best) {
        best = warp_best[w];
        where = warp_where[w];
      }
    }
    if (best == nothing) break;
    if (threadIdx.x == 0) {
      similarities[count] = all[where];
      slots[count] = all_slots[where];
      all[where] = -INFINITY;
    }
    __syncthreads();
  }
  __syncthreads();
  return count;
}

template <typename T>
__global__ void __launch_bounds__(kThreads)
    refine_kernel(View view, const T* rows, const int* changed_rows, Found found) {
  __shared__ float similarities[kMaxNeighbours];
  __shared__ int slots[kMaxNeighbours];
  __shared__ Entry entries[kMaxNeighbours];
  const int slot = changed_rows[blockIdx.x];
  const int k = view.neighbours;
  const int count = merge(found, blockIdx.x, k, similarities, slots);

  const double inverse = view.inverse_norms[slot];
  const T* own = rows + static_cast<long long>(slot) * view.stride;
  for (int e = threadIdx.x / kWarp; e < count; e += kWarps) {
    const int other = slots[e];
    const double dot =
        warp_dot(own, rows + static_cast<long long>(other) * view.stride, view.stride);
    if (threadIdx.x % kWarp == 0) {
      entries[e] = {distance_key(dot, __dmul_rn(inverse, view.inverse_norms[other])), other,
                    view.changed[other]};
    }
  }
  __syncthreads();
  if (threadIdx.x != 0) return;

  const bool weighted = view.quarters != kUnweighted;
  double largest = 0;
  for (int e = 0; e < count; ++e) {
    const double seemed =
        weighted ? view.rounding +
                       uncounted_distance(-similarities[e] / merge_factor(view, slot, slots[e]),
                                          view.reach / kKeysPerUnit)
                 : 1.0 - similarities[e] * inverse;
    largest = fmax(largest, fabs(seemed - entries[e].key / kKeysPerUnit));
  }
  atomicMax(reinterpret_cast<unsigned*>(view.words + kRounding),
            __float_as_uint(static_cast<float>(largest)));
  for (int e = 1; e < count; ++e) {
    const Entry moving = entries[e];
    int place = e;
    for (; place > 0 && comes_before(moving.key, moving.change, entries[place - 1].key,
                                     entries[place - 1].change);
         --place) {
      entries[place] = entries[place - 1];
    }
    entries[place] = moving;
  }
  for (int e = 0; e < k; ++e) {
    view.list_slots[static_cast<long long>(slot) * k + e] = e < count ? entries[e].slot : -1;
    view.list_keys[static_cast<long long>(slot) * k + e] = e < count ? entries[e].key : kNoKey;
  }
  view.bound_change[slot] = 0;
  if (count < k) {
    view.bound_key[slot] = kNoKey;
  } else if (largest > view.rounding) {
    // A product this wrong proves nothing: the row will be looked at in float64.
    view.bound_key[slot] = 0;
  } else if (weighted) {
    const double cost = -static_cast<double>(similarities[k - 1]) * (1.0 - kMergeShare);
    view.bound_key[slot] = cost > 0 ? __float_as_uint(static_cast<float>(cost * kKeysPerUnit)) : 0u;
  } else {
    const double least = 1.0 - similarities[k - 1] * inverse - view.rounding;
    view.bound_key[slot] = static_cast<unsigned>(fmin(fmax(least, 0.0), 2.0) * kKeysPerUnit);
  }
}

}  // namespace

cudaError_t find_nearest(const View& view, const Block& block, const Found& found, int first_part,
                         cudaStream_t stream) {
  const dim3 grid(blocks_for(block.rows, kRowsPerBlock), blocks_for(block.columns, kPart));
  const bool whole = block.first_row_columns >= block.columns;
  auto* kernel = whole ? find_nearest_kernel<true, false> : find_nearest_kernel<false, false>;
  if (view.quarters != kUnweighted) {
    kernel = whole ? find_nearest_kernel<true, true> : find_nearest_kernel<false, true>;
  }
  kernel<<<grid, kThreads, 0, stream>>>(view, block, found, first_part);
  return cudaGetLastError();
}

cudaError_t refine_rows(const View& view, const int* changed_rows, int rows, const Found& found,
                        cudaStream_t stream) {
  return with_rows(view, [&](auto* stored) {
    refine_kernel<<<rows, kThreads, 0, stream>>>(view, stored, changed_rows, found);
  });
}

}  // namespace riffle::nearest_index_cuda

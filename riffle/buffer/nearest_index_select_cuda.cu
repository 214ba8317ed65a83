// Who leaves: one warp walks from the most redundant row to the next, over the smallest values of
// tiles of rows. Rows that have nobody left on their list are looked at again in float64 first,
// when they may be next.
#include <cmath>

#include "riffle/buffer/nearest_index.cuh"

namespace riffle::nearest_index_cuda {
namespace {

constexpr int kTogether = 4;  // rows looked at again while another passes by once
constexpr int kRescanBlocks = 1024;

// The first pair of a row, or where its list ends.
struct Nearest {
  unsigned key;
  int slot;  // -1: nobody known; the row must be looked at again before the key can be trusted
};

__device__ Nearest nearest_of(const View& view, int slot) {
  const unsigned long long change = view.changed[slot];
  if (change == 0) return {kNoKey, -1};
  const unsigned bound = view.bound_key[slot];
  const long long list = static_cast<long long>(slot) * view.neighbours;
  Nearest first{kNoKey, -1};
  for (int e = 0; e < view.neighbours; ++e) {
    const int other = view.list_slots[list + e];
    if (other < 0) break;
    if (!owns(view, change, other)) continue;
    const unsigned key = cost_key(view, view.list_keys[list + e], slot, other);
    if (first.slot < 0 ||
        comes_before(key, view.changed[other], first.key, view.changed[first.slot])) {
      first = {key, other};
    }
    if (view.quarters == kUnweighted) break;  // the list is in order
  }
  if (first.slot < 0) return {bound, -1};
  const bool certain =
      first.key != bound ? first.key < bound : view.changed[first.slot] <= view.bound_change[slot];
  return certain ? first : Nearest{bound, -1};
}

// Brings all values up to date and notes rows to look at again.
__global__ void freshen_kernel(View view, int blocked) {
  const int slot = blockIdx.x * kThreads + threadIdx.x;
  if (slot >= view.slots) return;
  const Nearest nearest = nearest_of(view, slot);
  view.values[slot] = nearest.key;
  if (slot == blocked) {
    view.uncertain[0] = slot;
  } else if (nearest.slot < 0 && nearest.key != kNoKey &&
             nearest.key <= static_cast<unsigned>(view.words[kThreshold])) {
    const int place = atomicAdd(&view.words[kUncertain], 1) + (blocked >= 0 ? 1 : 0);
    if (place < kRescans) view.uncertain[place] = slot;
  }
}

__device__ int rescans(const View& view, int blocked) {
  return min(kRescans, view.words[kUncertain] + (blocked >= 0 ? 1 : 0));
}

// Costs of the rows noted with all rows that they own, exactly; a warp for each of the latter.
template <typename T>
__global__ void __launch_bounds__(kThreads)
    rescan_keys_kernel(View view, const T* rows, int blocked) {
  const int count = rescans(view, blocked);
  const int lane = threadIdx.x % kWarp;
  for (int begin = 0; begin < count; begin += kTogether) {
    for (int other = blockIdx.x * kWarps + threadIdx.x / kWarp; other < view.slots;
         other += gridDim.x * kWarps) {
      double even[kTogether] = {}, odd[kTogether] = {};
      const T* passing = rows + static_cast<long long>(other) * view.stride;
      const T* looking[kTogether];
#pragma unroll
      for (int q = 0; q < kTogether; ++q) {
        const int slot = view.uncertain[min(begin + q, count - 1)];
        looking[q] = rows + static_cast<long long>(slot) * view.stride;
      }
#pragma unroll 2
      for (int i = 2 * lane; i < view.stride; i += 2 * kWarp) {
        const float2 x = load2(passing + i);
#pragma unroll
        for (int q = 0; q < kTogether; ++q) {
          const float2 y = load2(looking[q] + i);
          even[q] = __fma_rn(static_cast<double>(x.x), static_cast<double>(y.x), even[q]);
          odd[q] = __fma_rn(static_cast<double>(x.y), static_cast<double>(y.y), odd[q]);
        }
      }
#pragma unroll
      for (int q = 0; q < kTogether; ++q) {
        const double dot = fold(even[q], odd[q]);
        if (lane != 0 || begin + q >= count) continue;
        const int slot = view.uncertain[begin + q];
        const double norms = __dmul_rn(view.inverse_norms[slot], view.inverse_norms[other]);
        view.rescan_keys[static_cast<long long>(begin + q) * view.slots + other] =
            owns(view, view.changed[slot], other)
                ? cost_key(view, distance_key(dot, norms), slot, other)
                : kNoKey;
      }
    }
  }
}

struct Place {
  unsigned key;
  int slot;
  unsigned long long change;
};

__device__ Place first_of(Place a, Place b) {
  return comes_before(b.key, b.change, a.key, a.change) ? b : a;
}

// The first by (key, change) of all threads of a block, in every thread.
__device__ Place first_of_block(Place mine) {
  __shared__ Place firsts[kWarps];
  for (int width = kWarp / 2; width > 0; width /= 2) {
    const Place theirs{__shfl_xor_sync(kAll, mine.key, width),
                       __shfl_xor_sync(kAll, mine.slot, width),
                       __shfl_xor_sync(kAll, mine.change, width)};
    mine = first_of(mine, theirs);
  }
  __syncthreads();
  if (threadIdx.x % kWarp == 0) firsts[threadIdx.x / kWarp] = mine;
  __syncthreads();
  Place best = firsts[0];
  for (int w = 1; w < kWarps; ++w) best = first_of(best, firsts[w]);
  return best;
}

// New lists for the rows noted, one after the other in order of (key, change).
template <typename T>
__global__ void __launch_bounds__(kThreads)
    rescan_lists_kernel(View view, const T* rows, int blocked) {
  const int q = blockIdx.x;
  if (q >= rescans(view, blocked)) return;
  const int slot = view.uncertain[q];
  const unsigned* keys = view.rescan_keys + static_cast<long long>(q) * view.slots;
  const int k = view.neighbours;
  Place last{0, -1, 0};  // changes count from 1: before every pair
  int count = 0;
  bool more = false;
  for (int e = 0; e <= k; ++e) {
    Place best{kNoKey, -1, 0};
    for (int other = threadIdx.x; other < view.slots; other += kThreads) {
      const unsigned key = keys[other];
      if (key == kNoKey || key < last.key || key > best.key) continue;
      const unsigned long long change = view.changed[other];
      if (!comes_before(last.key, last.change, key, change)) continue;
      if (best.slot < 0 || comes_before(key, change, best.key, best.change)) {
        best = {key, other, change};
      }
    }
    if (best.slot < 0) best.change = ~0ull;
    best = first_of_block(best);
    if (best.slot < 0) break;
    if (e == k) {
      more = true;
      break;
    }
    last = best;
    ++count;
    // Lists hold distances; without weights these are the costs.
    unsigned distance = best.key;
    if (view.quarters != kUnweighted && threadIdx.x < kWarp) {
      const double dot =
          warp_dot(rows + static_cast<long long>(slot) * view.stride,
                   rows + static_cast<long long>(best.slot) * view.stride, view.stride);
      distance =
          distance_key(dot, __dmul_rn(view.inverse_norms[slot], view.inverse_norms[best.slot]));
    }
    if (threadIdx.x == 0) {
      view.list_slots[static_cast<long long>(slot) * k + e] = best.slot;
      view.list_keys[static_cast<long long>(slot) * k + e] = distance;
    }
  }
  if (threadIdx.x != 0) return;
  for (int e = count; e < k; ++e) {
    view.list_slots[static_cast<long long>(slot) * k + e] = -1;
    view.list_keys[static_cast<long long>(slot) * k + e] = kNoKey;
  }
  view.bound_key[slot] = more ? last.key : kNoKey;
  view.bound_change[slot] = more ? last.change : 0;
  view.values[slot] = nearest_of(view, slot).key;
  atomicAdd(&view.words[kRescanned], 1);
}

__device__ unsigned long long least_of_warp(unsigned long long number) {
  for (int width = kWarp / 2; width > 0; width /= 2) {
    const unsigned long long other = __shfl_xor_sync(kAll, number, width);
    number = other < number ? other : number;
  }
  return number;
}

// Whether `a` leaves when it is merged with `b`. As NearestIndexCpu::who_leaves.
__device__ bool leaves(const View& view, int a, int b) {
  const unsigned long long age_a = view.ages[a];
  const unsigned long long age_b = view.ages[b];
  const bool a_is_older = age_a != age_b ? age_a < age_b : a < b;
  if (view.quarters != kUnweighted) {
    const double weight_a = view.weights[a];
    const double weight_b = view.weights[b];
    if (view.draws_stayer) {
      const bool stays = a_is_older ? older_stays(age_a, age_b, weight_a, weight_b)
                                    : older_stays(age_b, age_a, weight_b, weight_a);
      return a_is_older != stays;
    }
    if (weight_a != weight_b) return weight_a < weight_b;
  }
  return a_is_older != view.newer_leaves;
}

// The first by (key, change) of a warp, in every lane. Keys alone decide nearly always.
__device__ int first_of_warp(const View& view, unsigned& key, int slot) {
  const unsigned least = __reduce_min_sync(kAll, key);
  const bool tied = key == least;
  key = least;
  unsigned candidates = __ballot_sync(kAll, tied);
  if (least == kNoKey) return -1;
  if (__popc(candidates) > 1) {
    const unsigned long long change = tied ? view.changed[slot] : ~0ull;
    candidates = __ballot_sync(kAll, change == least_of_warp(change));
  }
  return __shfl_sync(kAll, slot, __ffs(candidates) - 1);
}

// The better of what a lane has and one more row.
__device__ void offer(const View& view, unsigned& key, int& slot, unsigned other_key, int other) {
  if (other_key > key || other_key == kNoKey) return;
  if (other_key == key && view.changed[other] > view.changed[slot]) return;
  key = other_key;
  slot = other;
}

// The first row of a tile, by a warp.
__device__ int first_of_tile(const View& view, int tile, unsigned& key) {
  key = kNoKey;
  int slot = -1;
  unsigned values[kTile / kWarp];
#pragma unroll
  for (int i = 0; i < kTile / kWarp; ++i) {
    const int row = tile * kTile + i * kWarp + threadIdx.x % kWarp;
    values[i] = row < view.slots ? view.values[row] : kNoKey;
  }
#pragma unroll
  for (int i = 0; i < kTile / kWarp; ++i) {
    offer(view, key, slot, values[i],
          tile * kTile + i * kWarp + static_cast<int>(threadIdx.x) % kWarp);
  }
  return first_of_warp(view, key, slot);
}

__global__ void tiles_kernel(View view, int tiles) {
  const int tile = blockIdx.x * kWarps + threadIdx.x / kWarp;
  if (tile >= tiles) return;
  unsigned key;
  const int slot = first_of_tile(view, tile, key);
  if (threadIdx.x % kWarp != 0) return;
  view.tile_keys[tile] = key;
  view.tile_slots[tile] = slot;
}

// One warp. Tiles' firsts are in shared memory; a tile is looked through again when one of its
// values has changed.
__global__ void __launch_bounds__(kWarp) select_kernel(View view, int tiles, int count) {
  extern __shared__ unsigned shared[];
  unsigned* keys = shared;
  int* slots = reinterpret_cast<int*>(shared + tiles);
  const int lane = threadIdx.x;
  if (view.words[kRefused] >= 0) {
    if (lane == 0) view.words[kCount] = 0, view.words[kBlocked] = -1;
    return;
  }
  for (int t = lane; t < tiles; t += kWarp) {
    keys[t] = view.tile_keys[t];
    slots[t] = view.tile_slots[t];
  }
  __syncwarp();
  const auto look_again = [&](int slot) {
    __syncwarp();
    const int tile = slot / kTile;
    unsigned key;
    const int first = first_of_tile(view, tile, key);
    if (lane == 0) {
      keys[tile] = key;
      slots[tile] = first;
    }
    __syncwarp();
  };

  int taken = 0;
  int stopped_at = -1;
  int examined = 0;
  unsigned threshold = 0;
  while (taken < count) {
    unsigned key = kNoKey;
    int slot = -1;
    for (int t = lane; t < tiles; t += kWarp) offer(view, key, slot, keys[t], slots[t]);
    slot = first_of_warp(view, key, slot);
    if (slot < 0) break;
    ++examined;

    // nearest_of(), a lane for each on the list.
    const unsigned long long change = view.changed[slot];
    const unsigned bound = view.bound_key[slot];
    const unsigned long long bound_change = view.bound_change[slot];
    const long long list = static_cast<long long>(slot) * view.neighbours;
    const int other = lane < view.neighbours ? view.list_slots[list + lane] : -1;
    const unsigned distance = lane < view.neighbours ? view.list_keys[list + lane] : kNoKey;
    unsigned other_key = distance;
    const unsigned long long other_change = other >= 0 ? view.changed[other] : 0;
    const bool is_owned = other_change != 0 && other_change < change;
    unsigned owned = __ballot_sync(kAll, is_owned);
    if (view.quarters != kUnweighted && owned != 0) {
      // Which of them comes first is not the order of the list.
      other_key = is_owned ? cost_key(view, other_key, slot, other) : kNoKey;
      const unsigned least = __reduce_min_sync(kAll, other_key);
      owned = __ballot_sync(kAll, is_owned && other_key == least);
      if (__popc(owned) > 1) {
        const bool tied = owned >> lane & 1;
        const unsigned long long earliest = least_of_warp(tied ? other_change : ~0ull);
        owned = __ballot_sync(kAll, tied && other_change == earliest);
      }
    }
    int head = -1;
    unsigned head_key = bound;
    unsigned head_distance = kNoKey;
    if (owned != 0) {
      const int e = __ffs(owned) - 1;
      const unsigned known = __shfl_sync(kAll, other_key, e);
      const unsigned long long known_change = __shfl_sync(kAll, other_change, e);
      const int known_slot = __shfl_sync(kAll, other, e);
      const unsigned known_distance = __shfl_sync(kAll, distance, e);
      if (known != bound ? known < bound : known_change <= bound_change) {
        head = known_slot;
        head_key = known;
        head_distance = known_distance;
      }
    }

    if (head_key != key) {
      if (lane == 0) view.values[slot] = head_key;
      look_again(slot);
      continue;
    }
    if (head < 0) {
      stopped_at = slot;
      threshold = max(threshold, key);
      break;
    }
    const int leaver = leaves(view, slot, head) ? slot : head;
    const int stayer = leaver == slot ? head : slot;
    __syncwarp();
    if (lane == 0) {
      int* words = view.words + kTaken + kTakenWords * taken;
      words[0] = leaver;
      words[1] = stayer;
      words[2] = static_cast<int>(head_distance);
      if (view.quarters != kUnweighted) {
        view.weights[stayer] = merged_weight(view.weights[stayer], view.weights[leaver],
                                             head_distance, view.reach, view.weight_limit);
        set_inverse_weight(view, stayer);
      }
      view.changed[leaver] = 0;
      view.values[leaver] = kNoKey;
      view.scales[leaver] = nanf("");
    }
    ++taken;
    threshold = max(threshold, key);
    look_again(leaver);
  }
  if (lane == 0) {
    view.words[kCount] = taken;
    view.words[kBlocked] = stopped_at;
    view.words[kThreshold] = static_cast<int>(threshold);
    view.words[kExamined] += examined;
  }
}

}  // namespace

cudaError_t select_rows(const View& view, int count, int blocked, cudaStream_t stream) {
  const cudaError_t reset = cudaMemsetAsync(view.words + kUncertain, 0, sizeof(int), stream);
  if (reset != cudaSuccess) return reset;
  const int tiles = blocks_for(view.slots, kTile);
  freshen_kernel<<<blocks_for(view.slots, kThreads), kThreads, 0, stream>>>(view, blocked);
  const cudaError_t scanned = with_rows(view, [&](auto* rows) {
    rescan_keys_kernel<<<kRescanBlocks, kThreads, 0, stream>>>(view, rows, blocked);
    rescan_lists_kernel<<<kRescans, kThreads, 0, stream>>>(view, rows, blocked);
  });
  if (scanned != cudaSuccess) return scanned;
  tiles_kernel<<<blocks_for(tiles, kWarps), kThreads, 0, stream>>>(view, tiles);
  const std::size_t shared = tiles * (sizeof(unsigned) + sizeof(int));
  constexpr std::size_t kFreely = 48 << 10;
  if (shared > kFreely) {
    const cudaError_t allowed = cudaFuncSetAttribute(
        select_kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(shared));
    if (allowed != cudaSuccess) return allowed;
  }
  select_kernel<<<1, kWarp, shared, stream>>>(view, tiles, count);
  return cudaGetLastError();
}

}  // namespace riffle::nearest_index_cuda

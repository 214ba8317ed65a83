// How the kernels of batch normalisation share out a map among threads, and how they add up.
#pragma once

#include "riffle/model/batch_norm_cuda.h"
#include "riffle/model/pack.cuh"

namespace riffle::batch_norm_cuda {

// A block of threads goes through some rows of a tile of channels: 8 lanes of 16 bytes, so that a
// row is read in one line of 128 bytes, and 32 rows at a time. What belongs to a channel stays in
// registers.
constexpr int kLanes = 8;
constexpr int kRowsAtOnce = 32;
constexpr int kThreads = kLanes * kRowsAtOnce;
// Loads of 16 bytes that a thread has in flight.
constexpr int kFlight = 4;
// Blocks that a multiprocessor holds at a time; all blocks of a launch run at once.
constexpr int kBlocksAtOnce = 4;
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

constexpr int kFinishChannels = 32;
constexpr int kFinishParts = 16;

// The sum over parts of one channel, by the threads of one column.
inline __device__ double add_parts(const float* partial, int parts, int channels, int channel,
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

inline int tiles_of(const Shape& shape) {
  const int tile = kLanes * group_of(shape.number);
  return (shape.channels + tile - 1) / tile;
}

inline dim3 grid_of(const Shape& shape) {
  return dim3(static_cast<unsigned>(tiles_of(shape)), static_cast<unsigned>(parts_of(shape)),
              static_cast<unsigned>(shape.views));
}

inline dim3 finish_grid(const Shape& shape) {
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

}  // namespace riffle::batch_norm_cuda

#include <cooperative_groups.h>
#include <cuda_bf16.h>

#include "riffle/augment/blur.h"
#include "riffle/augment/color.h"
#include "riffle/augment/imagenet_scale.h"
#include "riffle/augment/render_cuda.h"

namespace riffle::render_cuda {
namespace {

namespace cg = cooperative_groups;

// A view is made by a group of blocks, each of which holds a band of its rows in shared memory; a
// small view needs only one. Blocks of a group read one another's bands.
constexpr int kThreads = 1024;
constexpr int kWarps = kThreads / kWarp;
constexpr int kMostBlocks = 8;
constexpr int kMostRadius = 64;  // of the blur
constexpr double kLn2 = 0.6931471805599453;

struct Plan {
  int blocks;  // a view
  int band;    // rows a block, even
  int taps_across;
  int taps_down;
  int radius;  // half of the blur's kernel
  std::size_t bytes;
};

int taps_for(int in, int out) {
  const double scale = static_cast<double>(in) / out;
  const double support = scale > 1.0 ? scale : 1.0;
  int taps = static_cast<int>(2 * support);
  if (taps < 2 * support) ++taps;
  return taps < in ? taps : in;
}

// taps_for() grows with the crop, so it is largest for the whole picture.
Plan plan_for(int size, int height, int width, int blocks) {
  Plan plan;
  plan.blocks = blocks;
  plan.band = ((size + blocks - 1) / blocks + 1) / 2 * 2;
  plan.taps_across = taps_for(width, size);
  plan.taps_down = taps_for(height, size);
  plan.radius = blur_kernel_size(size) / 2;
  const std::size_t floats = 3 * static_cast<std::size_t>(plan.band) * size +
                             static_cast<std::size_t>(size) * (plan.taps_across + 1) +
                             static_cast<std::size_t>(plan.band) * (plan.taps_down + 1) +
                             2 * plan.radius + 3 +
                             static_cast<std::size_t>(kWarps) * (size + 2 * plan.radius + 4);
  plan.bytes = floats * sizeof(float);
  return plan;
}

// The places of the original axis that one place of the resized axis comes from, as ResizeAxis.
__device__ void set_taps(int in, int out, int i, int taps, int* first, float* weights) {
  const double scale = static_cast<double>(in) / out;
  const double support = fmax(scale, 1.0);
  const double centre = (i + 0.5) * scale;
  int from = static_cast<int>(floor(centre - support + 0.5));
  from = max(0, min(from, in - taps));
  double total = 0;
  for (int k = 0; k < taps; ++k) {
    const double value = fmax(0.0, 1.0 - fabs(from + k + 0.5 - centre) / support);
    weights[k] = static_cast<float>(value);
    total += value;
  }
  const float share = static_cast<float>(1.0 / total);
  for (int k = 0; k < taps; ++k) weights[k] *= share;
  *first = from;
}

__device__ int device_taps(int in, int out) {
  const double support = fmax(static_cast<double>(in) / out, 1.0);
  return min(in, static_cast<int>(ceil(2 * support)));
}

struct Color {
  float r, g, b;
};

__device__ float gray_of(const Color& c) {
  return kGrayRed * c.r + kGrayGreen * c.g + kGrayBlue * c.b;
}
__device__ float unit(float value) { return fmaxf(fminf(value, 1.0f), 0.0f); }

__device__ Color scaled(const Color& c, float factor, float offset) {
  return {unit(factor * c.r + offset), unit(factor * c.g + offset), unit(factor * c.b + offset)};
}

// As adjust_hue(), where the way back from hue is explained.
__device__ Color turned(const Color& c, float shift) {
  const float high = fmaxf(fmaxf(c.r, c.g), c.b);
  const float low = fminf(fminf(c.r, c.g), c.b);
  const float chroma = high - low;
  const float inverse = 1.0f / (chroma > 0.0f ? chroma : 1.0f);
  float hue = high == c.r   ? (c.g - c.b) * inverse
              : high == c.g ? 2.0f + (c.b - c.r) * inverse
                            : 4.0f + (c.r - c.g) * inverse;
  hue += 6.0f * shift;
  if (hue < 0.0f) hue += 6.0f;
  if (hue >= 6.0f) hue -= 6.0f;
  float channels[3];
#pragma unroll
  for (int channel = 0; channel < 3; ++channel) {
    const float fall = 1.0f + 2.0f * static_cast<float>(channel);
    const float since = hue >= fall ? hue - fall : hue + (6.0f - fall);
    const float depth = fmaxf(fminf(fminf(since, 4.0f - since), 1.0f), 0.0f);
    channels[channel] = fmaxf(high - chroma * depth, 0.0f);
  }
  return {channels[0], channels[1], channels[2]};
}

__device__ Color jittered(const Color& c, Jitter kind, float amount, float mean) {
  switch (kind) {
    case Jitter::brightness:
      return scaled(c, amount, 0.0f);
    case Jitter::contrast:
      return scaled(c, amount, (1.0f - amount) * mean);
    case Jitter::saturation:
      return scaled(c, amount, (1.0f - amount) * gray_of(c));
    case Jitter::hue:
      return turned(c, amount);
  }
  return c;
}

__device__ int mirrored(int i, int n) { return i < 0 ? -i : i < n ? i : 2 * (n - 1) - i; }

// The blocks that make one view.
struct Group {
  int rank, count;
#if __CUDA_ARCH__ >= 900
  __device__ Group()
      : rank(cg::this_cluster().block_rank()), count(cg::this_cluster().num_blocks()) {}
  __device__ void sync() const { cg::this_cluster().sync(); }
  template <typename T>
  __device__ T* of(T* shared, int block) const {
    return cg::this_cluster().map_shared_rank(shared, block);
  }
#else
  __device__ Group() : rank(0), count(1) {}
  __device__ void sync() const { __syncthreads(); }
  template <typename T>
  __device__ T* of(T* shared, int) const {
    return shared;
  }
#endif
};

__device__ float normal(float value, int channel) {
  constexpr float kMeans[3] = {kMean[0], kMean[1], kMean[2]};
  constexpr float kFactors[3] = {1.0f / kStd[0], 1.0f / kStd[1], 1.0f / kStd[2]};
  return (value - kMeans[channel]) * kFactors[channel];
}

__device__ unsigned two(float a, float b) {
  const __nv_bfloat162 pair = __floats2bfloat162_rn(a, b);
  return *reinterpret_cast<const unsigned*>(&pair);
}

__global__ void __launch_bounds__(kThreads) render_kernel(Job job, Plan sizes) {
  extern __shared__ float shared[];
  __shared__ double warp_sums[kWarps];
  __shared__ double band_sum;
  const Group group;
  const int size = job.size;
  const int view = blockIdx.x / sizes.blocks;
  const ViewPlan plan = job.plans[view];
  const int top = group.rank * sizes.band;
  const int rows = max(0, min(sizes.band, size - top));
  const int pixels = rows * size;

  float* planes = shared;  // [3][band][size]
  const int plane = sizes.band * size;
  float* across = planes + 3 * plane;
  int* across_first = reinterpret_cast<int*>(across + size * sizes.taps_across);
  float* down = reinterpret_cast<float*>(across_first + size);
  int* down_first = reinterpret_cast<int*>(down + sizes.band * sizes.taps_down);
  float* bell = reinterpret_cast<float*>(down_first + sizes.band);
  float* row_buffers = bell + 2 * sizes.radius + 3;

  const int taps_across = device_taps(plan.crop.width, size);
  const int taps_down = device_taps(plan.crop.height, size);
  for (int i = threadIdx.x; i < size; i += kThreads) {
    set_taps(plan.crop.width, size, i, taps_across, across_first + i, across + i * taps_across);
  }
  for (int i = threadIdx.x; i < rows; i += kThreads) {
    set_taps(plan.crop.height, size, top + i, taps_down, down_first + i, down + i * taps_down);
  }
  int radius = 0;
  float bell_share = 0;
  if (plan.blur_sigma > 0) {
    const double reach = sqrt(2.0 * kTapBits * kLn2) * plan.blur_sigma;
    radius = min(sizes.radius, static_cast<int>(reach));
    for (int k = threadIdx.x; k <= radius; k += kThreads) {
      const double distance = k / static_cast<double>(plan.blur_sigma);
      const float height = static_cast<float>(exp(-0.5 * distance * distance));
      bell[1 + radius - k] = bell[1 + radius + k] = height;
    }
    if (threadIdx.x == 0) bell[0] = bell[2 * radius + 2] = 0.0f;
    __syncthreads();
    double total = 0;
    for (int k = 1; k <= 2 * radius + 1; ++k) total += bell[k];
    bell_share = static_cast<float>(1.0 / total);
  }
  __syncthreads();

  int contrast_at = plan.jitter_count;  // where contrast stands in the order
  for (int i = 0; i < plan.jitter_count; ++i) {
    if (plan.jitter_order[i] == Jitter::contrast) contrast_at = i;
  }
  const bool contrast = contrast_at < plan.jitter_count;

  // Crop, resize, and the jitters up to contrast.
  const std::uint8_t* picture =
      job.pictures + static_cast<std::int64_t>(view % job.count) * job.height * job.width * 3;
  double gray_sum = 0;
  for (int i = threadIdx.x; i < pixels; i += kThreads) {
    const int y = i / size, x = i % size;
    const float* wy = down + y * taps_down;
    const float* wx = across + x * taps_across;
    Color c{0, 0, 0};
    for (int ky = 0; ky < taps_down; ++ky) {
      const std::uint8_t* from =
          picture + (static_cast<std::int64_t>(plan.crop.top + down_first[y] + ky) * job.width +
                     plan.crop.left + across_first[x]) *
                        3;
      Color row{0, 0, 0};
      for (int kx = 0; kx < taps_across; ++kx) {
        row.r += static_cast<float>(from[3 * kx]) * kByteScale * wx[kx];
        row.g += static_cast<float>(from[3 * kx + 1]) * kByteScale * wx[kx];
        row.b += static_cast<float>(from[3 * kx + 2]) * kByteScale * wx[kx];
      }
      c.r += row.r * wy[ky];
      c.g += row.g * wy[ky];
      c.b += row.b * wy[ky];
    }
    for (int k = 0; k < contrast_at; ++k) {
      const Jitter kind = plan.jitter_order[k];
      c = jittered(c, kind, plan.jitter_amount[static_cast<int>(kind)], 0.0f);
    }
    if (contrast) {
      gray_sum += gray_of(c);
    } else if (plan.grayscale) {
      c.r = c.g = c.b = gray_of(c);
    }
    const int at = y * size + (plan.flip ? size - 1 - x : x);
    planes[at] = c.r;
    planes[plane + at] = c.g;
    planes[2 * plane + at] = c.b;
  }

  // The mean gray, then contrast and what follows it.
  if (contrast) {
    for (int step = kWarp / 2; step > 0; step /= 2) {
      gray_sum += __shfl_xor_sync(0xFFFFFFFFu, gray_sum, step);
    }
    if (threadIdx.x % kWarp == 0) warp_sums[threadIdx.x / kWarp] = gray_sum;
    __syncthreads();
    if (threadIdx.x == 0) {
      double sum = 0;
      for (int w = 0; w < kWarps; ++w) sum += warp_sums[w];
      band_sum = sum;
    }
    group.sync();
    double total = 0;
    for (int block = 0; block < group.count; ++block) total += *group.of(&band_sum, block);
    const float mean = static_cast<float>(total / (static_cast<double>(size) * size));
    for (int i = threadIdx.x; i < pixels; i += kThreads) {
      Color c{planes[i], planes[plane + i], planes[2 * plane + i]};
      for (int k = contrast_at; k < plan.jitter_count; ++k) {
        const Jitter kind = plan.jitter_order[k];
        c = jittered(c, kind, plan.jitter_amount[static_cast<int>(kind)], mean);
      }
      if (plan.grayscale) c.r = c.g = c.b = gray_of(c);
      planes[i] = c.r;
      planes[plane + i] = c.g;
      planes[2 * plane + i] = c.b;
    }
  }
  __syncthreads();

  if (radius > 0) {
    // bell[0] and the number after the last tap are 0, so that neighbours can share what they read.
    float* buffer = row_buffers + (threadIdx.x / kWarp) * (size + 2 * sizes.radius + 4);
    const int lane = threadIdx.x % kWarp;
    for (int line = threadIdx.x / kWarp; line < 3 * rows; line += kWarps) {
      float* row = planes + (line / rows) * plane + (line % rows) * size;
      for (int x = lane; x <= size + 2 * radius; x += kWarp) {
        buffer[x] = row[mirrored(x - radius, size)];
      }
      __syncwarp();
      for (int x = 2 * lane; x < size; x += 2 * kWarp) {
        float first = 0, second = 0, weight = 0;
        for (int k = 0; k <= 2 * radius + 1; ++k) {
          const float v = buffer[x + k];
          const float before = weight;
          weight = bell[k + 1];
          first += v * weight;
          second += v * before;
        }
        row[x] = first * bell_share;
        if (x + 1 < size) row[x + 1] = second * bell_share;
      }
      __syncwarp();
    }
    group.sync();
  }

  // The vertical part of the blur is done while the view is written.
  const auto row_at = [&](int channel, int y) -> const float* {
    if (y >= top && y < top + rows) return planes + channel * plane + (y - top) * size;
    const int block = y / sizes.band;
    return group.of(planes, block) + channel * plane + (y - block * sizes.band) * size;
  };
  const auto value = [&](int channel, int y, int x) {
    if (radius == 0) return normal(planes[channel * plane + y * size + x], channel);
    float sum = 0;
    for (int k = 0; k <= 2 * radius; ++k) {
      sum += row_at(channel, mirrored(top + y + k - radius, size))[x] * bell[k + 1];
    }
    return normal(sum * bell_share, channel);
  };
  // Two by two pixels from (y, x) on, both even: they share what they read.
  const auto cell = [&](int channel, int y, int x, float* out) {
    float2 upper{0, 0}, lower{0, 0};
    if (radius == 0) {
      const float* row = planes + channel * plane + y * size + x;
      upper = *reinterpret_cast<const float2*>(row);
      lower = *reinterpret_cast<const float2*>(row + size);
    } else {
      float weight = 0;
      for (int k = 0; k <= 2 * radius + 1; ++k) {
        const float2 v = *reinterpret_cast<const float2*>(
            row_at(channel, mirrored(top + y + k - radius, size)) + x);
        const float before = weight;
        weight = bell[k + 1] * bell_share;
        upper.x += v.x * weight, upper.y += v.y * weight;
        lower.x += v.x * before, lower.y += v.y * before;
      }
    }
    out[0] = normal(upper.x, channel), out[3] = normal(upper.y, channel);
    out[6] = normal(lower.x, channel), out[9] = normal(lower.y, channel);
  };
  if (job.layout == ViewLayout::folded) {
    const int cells = size / 2;
    const int side = static_cast<int>(kFoldedBefore + kFoldedAfter) + cells;
    auto* out = static_cast<uint4*>(job.out);
    for (int i = threadIdx.x; i < rows / 2 * cells; i += kThreads) {
      const int y = i / cells, x = i % cells;
      float v[12];
#pragma unroll
      for (int channel = 0; channel < 3; ++channel) cell(channel, 2 * y, 2 * x, v + channel);
      const std::int64_t at =
          ((static_cast<std::int64_t>(view) * side + kFoldedBefore + top / 2 + y) * side +
           kFoldedBefore + x) *
          2;
      out[at] = make_uint4(two(v[0], v[1]), two(v[2], v[3]), two(v[4], v[5]), two(v[6], v[7]));
      out[at + 1] = make_uint4(two(v[8], v[9]), two(v[10], v[11]), 0, 0);
    }
  } else {
    for (int i = threadIdx.x; i < pixels; i += kThreads) {
      const int y = i / size, x = i % size;
      const float v[3] = {value(0, y, x), value(1, y, x), value(2, y, x)};
      const std::int64_t at = (static_cast<std::int64_t>(view) * size + top + y) * size + x;
      if (job.layout == ViewLayout::padded) {
        static_cast<uint4*>(job.out)[at] = make_uint4(two(v[0], v[1]), two(v[2], 0.0f), 0, 0);
      } else if (job.number == Number::float32) {
        float* out = static_cast<float*>(job.out) + 3 * at;
        out[0] = v[0], out[1] = v[1], out[2] = v[2];
      } else {
        auto* out = static_cast<__nv_bfloat16*>(job.out) + 3 * at;
        for (int c = 0; c < 3; ++c) out[c] = __float2bfloat16(v[c]);
      }
    }
  }
  // A block must not end while others may still read its band.
  if (radius > 0) group.sync();
}

// Returns the fewest blocks whose bands fit; 0 if none do.
int blocks_for(int size, int height, int width) {
  int device = 0, shared = 0, major = 0;
  if (cudaGetDevice(&device) != cudaSuccess) return 0;
  cudaDeviceGetAttribute(&shared, cudaDevAttrMaxSharedMemoryPerBlockOptin, device);
  cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device);
  constexpr int kStatic = 1024;  // static shared memory of the kernel
  for (int blocks = 1; blocks <= (major >= 9 ? kMostBlocks : 1); blocks *= 2) {
    const Plan plan = plan_for(size, height, width, blocks);
    if (plan.radius <= kMostRadius && plan.bytes + kStatic <= static_cast<std::size_t>(shared)) {
      return blocks;
    }
  }
  return 0;
}

}  // namespace

bool fits(int size, int height, int width) { return blocks_for(size, height, width) > 0; }

cudaError_t render(const Job& job, cudaStream_t stream) {
  const Plan plan =
      plan_for(job.size, job.height, job.width, blocks_for(job.size, job.height, job.width));
  cudaError_t status = cudaFuncSetAttribute(
      render_kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(plan.bytes));
  if (status != cudaSuccess) return status;
  cudaLaunchConfig_t launch{};
  launch.gridDim = dim3(static_cast<unsigned>(job.views * plan.blocks));
  launch.blockDim = dim3(kThreads);
  launch.dynamicSmemBytes = plan.bytes;
  launch.stream = stream;
  cudaLaunchAttribute cluster{};
  cluster.id = cudaLaunchAttributeClusterDimension;
  cluster.val.clusterDim = {static_cast<unsigned>(plan.blocks), 1, 1};
  launch.attrs = &cluster;
  launch.numAttrs = plan.blocks > 1 ? 1 : 0;
  return cudaLaunchKernelEx(&launch, render_kernel, job, plan);
}

}  // namespace riffle::render_cuda

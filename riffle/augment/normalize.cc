#include "riffle/augment/normalize.h"

#include <cstdint>
#include <stdexcept>

#include <ATen/ATen.h>
#include <ATen/Parallel.h>

#include "riffle/augment/simd.h"
#include "riffle/base/text.h"

namespace riffle {
namespace {

inline float normal(float value, int channel) {
  return (value - kMean[channel]) * (1.0f / kStd[channel]);
}

RIFFLE_SIMD void normalize_bytes(const std::uint8_t* __restrict bytes, std::int64_t pixels,
                                 float* __restrict out) {
  for (std::int64_t i = 0; i < pixels; ++i) {
    out[3 * i] = normal(static_cast<float>(bytes[3 * i]) * kByteScale, 0);
    out[3 * i + 1] = normal(static_cast<float>(bytes[3 * i + 1]) * kByteScale, 1);
    out[3 * i + 2] = normal(static_cast<float>(bytes[3 * i + 2]) * kByteScale, 2);
  }
}

}  // namespace

RIFFLE_SIMD void normalize_planes(const float* planes, int pixels, float* __restrict out) {
  const float* red = planes;
  const float* green = planes + pixels;
  const float* blue = planes + 2 * pixels;
  for (int i = 0; i < pixels; ++i) {
    out[3 * i] = normal(red[i], 0);
    out[3 * i + 1] = normal(green[i], 1);
    out[3 * i + 2] = normal(blue[i], 2);
  }
}

at::Tensor normalize(const at::Tensor& pictures) {
  if (pictures.defined() && !pictures.is_cpu()) return normalize_composed(pictures);
  check_pictures(pictures);
  const auto n = pictures.size(0), height = pictures.size(1), width = pictures.size(2);
  auto result = at::empty({n, 3, height, width}, pictures.options().dtype(at::kFloat),
                          at::MemoryFormat::ChannelsLast);
  const auto* from = pictures.const_data_ptr<std::uint8_t>();
  auto* to = result.mutable_data_ptr<float>();
  constexpr std::int64_t kPixelsPerTask = 1 << 16;
  at::parallel_for(0, n * height * width, kPixelsPerTask,
                   [&](std::int64_t begin, std::int64_t end) {
                     normalize_bytes(from + 3 * begin, end - begin, to + 3 * begin);
                   });
  return result;
}

at::Tensor normalize_composed(const at::Tensor& pictures) {
  at::Tensor result = at::empty(pictures.sizes(), pictures.options().dtype(at::kFloat));
  for (int channel = 0; channel < 3; ++channel) {
    const float scale = 1.0f / (255.0f * kStd[channel]);
    at::Tensor plane = result.select(3, channel);
    plane.copy_(pictures.select(3, channel)).mul_(scale).sub_(kMean[channel] / kStd[channel]);
  }
  return result.permute({0, 3, 1, 2});
}

void check_pictures(const at::Tensor& pictures) {
  if (!pictures.defined() || pictures.dim() != 4 || pictures.size(3) != 3 ||
      pictures.size(1) == 0 || pictures.size(2) == 0 || pictures.scalar_type() != at::kByte ||
      !pictures.is_contiguous() || !pictures.is_cpu()) {
    throw std::invalid_argument(
        "pictures must be a contiguous uint8 tensor [n, height, width, 3] on the CPU, of at least "
        "one pixel each");
  }
}

}  // namespace riffle

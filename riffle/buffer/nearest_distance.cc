#include "riffle/buffer/nearest_distance.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "riffle/buffer/widest.h"

namespace riffle {
namespace {

// Whatever the width of the vectors, the order of the additions is the same.
constexpr std::int64_t kLanes = 64;

}  // namespace

RIFFLE_WIDEST
double dot64(const float* a, const float* b, std::int64_t dim) {
  double sums[kLanes] = {};
  std::int64_t at = 0;
  for (; at + kLanes <= dim; at += kLanes) {
    for (std::int64_t lane = 0; lane < kLanes; ++lane) {
      sums[lane] += static_cast<double>(a[at + lane]) * static_cast<double>(b[at + lane]);
    }
  }
  for (std::int64_t lane = 0; at + lane < dim; ++lane) {
    sums[lane] += static_cast<double>(a[at + lane]) * static_cast<double>(b[at + lane]);
  }
  double folded[kLanes / 2];
  for (std::int64_t lane = 0; lane < kLanes / 2; ++lane) {
    folded[lane] = sums[2 * lane] + sums[2 * lane + 1];
  }
  for (std::int64_t width = kLanes / 4; width > 0; width /= 2) {
    for (std::int64_t lane = 0; lane < width; ++lane) folded[lane] += folded[lane + width];
  }
  return folded[0];
}

DistanceKey distance_key(double dot, double inverse_norms) {
  const double cosine = dot * inverse_norms;
  const double distance = std::min(std::max(1.0 - cosine, 0.0), 2.0);
  return static_cast<DistanceKey>(distance * kKeysPerUnit + 0.5);
}

DistanceKey key_at_most(double distance) {
  return static_cast<DistanceKey>(std::min(std::max(distance, 0.0), 2.0) * kKeysPerUnit);
}

double float32_rounding(std::int64_t dim) {
  return std::ldexp(8.0 + std::sqrt(static_cast<double>(dim)), -24);
}

RIFFLE_WIDEST
void block_maxima(const float* products, const float* scales, std::int64_t blocks, float* maxima) {
  constexpr std::int64_t kWidth = 16;
  for (std::int64_t block = 0; block < blocks; ++block) {
    float best[kWidth];
    for (std::int64_t i = 0; i < kWidth; ++i) best[i] = -std::numeric_limits<float>::infinity();
    for (std::int64_t part = 0; part < kMaximaBlock; part += kWidth) {
      for (std::int64_t i = 0; i < kWidth; ++i) {
        const float value = products[part + i] * scales[part + i];
        best[i] = value > best[i] ? value : best[i];
      }
    }
    for (std::int64_t width = kWidth / 2; width > 0; width /= 2) {
      for (std::int64_t i = 0; i < width; ++i) {
        best[i] = best[i + width] > best[i] ? best[i + width] : best[i];
      }
    }
    maxima[block] = best[0];
    products += kMaximaBlock;
    scales += kMaximaBlock;
  }
}

RIFFLE_WIDEST
void widen_float16(const std::uint16_t* from, std::int64_t count, float* to) {
  for (std::int64_t i = 0; i < count; ++i) {
    const std::uint32_t bits = from[i];
    const std::uint32_t normal = ((bits & 0x7FFFu) << 13) + (112u << 23);
    // Small numbers have no exponent of their own: they are whole multiples of 2^-24.
    const float small = static_cast<float>(static_cast<std::int32_t>(bits & 0x3FFu)) * 0x1p-24f;
    const std::uint32_t magnitude =
        (bits & 0x7C00u) == 0 ? std::bit_cast<std::uint32_t>(small) : normal;
    to[i] = std::bit_cast<float>(magnitude | (bits & 0x8000u) << 16);
  }
}

void widen_bfloat16(const std::uint16_t* from, std::int64_t count, float* to) {
  for (std::int64_t i = 0; i < count; ++i) {
    to[i] = std::bit_cast<float>(static_cast<std::uint32_t>(from[i]) << 16);
  }
}

}  // namespace riffle

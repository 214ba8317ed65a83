#include "riffle/augment/color.h"

#include <algorithm>
#include <cstddef>
#include <cstring>

#include "riffle/augment/simd.h"

namespace riffle {
namespace {

inline float gray_of(float red, float green, float blue) {
  return kGrayRed * red + kGrayGreen * green + kGrayBlue * blue;
}

// Written so that it compiles to a minimum and a maximum.
inline float unit(float value) {
  value = value < 1.0f ? value : 1.0f;
  return value > 0.0f ? value : 0.0f;
}

// The sum is split over a fixed number of lanes, in blocks short enough for float: the same on
// every processor.
RIFFLE_SIMD double gray_sum(const float* planes, int pixels) {
  constexpr int kLanes = 16;
  constexpr int kBlock = 64 * kLanes;
  const float* red = planes;
  const float* green = planes + pixels;
  const float* blue = planes + 2 * pixels;
  double total = 0;
  int i = 0;
  while (i + kLanes <= pixels) {
    const int end = i + std::min(kBlock, (pixels - i) / kLanes * kLanes);
    float lanes[kLanes] = {};
    for (; i < end; i += kLanes) {
      for (int lane = 0; lane < kLanes; ++lane) {
        lanes[lane] += gray_of(red[i + lane], green[i + lane], blue[i + lane]);
      }
    }
    for (const float lane : lanes) total += lane;
  }
  for (; i < pixels; ++i) total += gray_of(red[i], green[i], blue[i]);
  return total;
}

// values = factor * values + offset, kept in [0, 1].
RIFFLE_SIMD void scale_and_shift(float* values, int count, float factor, float offset) {
  for (int i = 0; i < count; ++i) values[i] = unit(factor * values[i] + offset);
}

}  // namespace

void adjust_brightness(float* planes, int pixels, float factor) {
  scale_and_shift(planes, 3 * pixels, factor, 0.0f);
}

void adjust_contrast(float* planes, int pixels, float factor) {
  const auto mean = static_cast<float>(gray_sum(planes, pixels) / pixels);
  scale_and_shift(planes, 3 * pixels, factor, (1.0f - factor) * mean);
}

RIFFLE_SIMD void adjust_saturation(float* planes, int pixels, float factor) {
  float* __restrict red = planes;
  float* __restrict green = planes + pixels;
  float* __restrict blue = planes + 2 * pixels;
  for (int i = 0; i < pixels; ++i) {
    const float offset = (1.0f - factor) * gray_of(red[i], green[i], blue[i]);
    red[i] = unit(factor * red[i] + offset);
    green[i] = unit(factor * green[i] + offset);
    blue[i] = unit(factor * blue[i] + offset);
  }
}

// Eight pixels at a time, with choices lane by lane: from plain loops with this many choices the
// compiler makes branches.
//
// On the colour circle cut in six, every channel follows the same course, a third of a turn after
// the one before: it lies at the pixel's maximum for two sixths, falls to the minimum over one,
// stays there for two and climbs back. So the way back from hue needs no case per sixth.
RIFFLE_SIMD void adjust_hue(float* planes, int pixels, float shift) {
  constexpr int kLanes = 8;
  using Lanes = float __attribute__((vector_size(kLanes * sizeof(float))));
  const Lanes zero = {};
  const Lanes one = zero + 1.0f;
  const float turn = 6.0f * shift;
  for (int i = 0; i < pixels; i += kLanes) {
    const std::size_t bytes = std::min(kLanes, pixels - i) * sizeof(float);
    Lanes r = zero, g = zero, b = zero;
    // A whole group has a copy of known length, which is one instruction.
    if (bytes == sizeof r) {
      std::memcpy(&r, planes + i, sizeof r);
      std::memcpy(&g, planes + pixels + i, sizeof g);
      std::memcpy(&b, planes + 2 * pixels + i, sizeof b);
    } else {
      std::memcpy(&r, planes + i, bytes);
      std::memcpy(&g, planes + pixels + i, bytes);
      std::memcpy(&b, planes + 2 * pixels + i, bytes);
    }
    const Lanes rg_max = r > g ? r : g;
    const Lanes rg_min = r < g ? r : g;
    const Lanes max = rg_max > b ? rg_max : b;
    const Lanes min = rg_min < b ? rg_min : b;
    const Lanes chroma = max - min;
    const Lanes inverse = 1.0f / (chroma > 0.0f ? chroma : one);

    const Lanes from_red = (g - b) * inverse;
    const Lanes from_green = 2.0f + (b - r) * inverse;
    const Lanes from_blue = 4.0f + (r - g) * inverse;
    const Lanes green_or_blue = max == g ? from_green : from_blue;
    Lanes hue = (max == r ? from_red : green_or_blue) + turn;
    hue = hue < 0.0f ? hue + 6.0f : hue;
    hue = hue >= 6.0f ? hue - 6.0f : hue;

    Lanes channels[3];
    for (int channel = 0; channel < 3; ++channel) {
      // Where the channel is on its course, in [0, 6): falling on [0, 1), low until 3, rising on
      // [3, 4).
      const float fall = 1.0f + 2.0f * static_cast<float>(channel);
      const Lanes since_fall = hue >= fall ? hue - fall : hue + (6.0f - fall);
      const Lanes until_high = 4.0f - since_fall;
      Lanes depth = since_fall < until_high ? since_fall : until_high;
      depth = depth < one ? depth : one;
      depth = depth > zero ? depth : zero;
      const Lanes value = max - chroma * depth;
      channels[channel] = value > zero ? value : zero;
    }
    for (int channel = 0; channel < 3; ++channel) {
      float* to = planes + channel * pixels + i;
      if (bytes == sizeof(Lanes)) {
        std::memcpy(to, &channels[channel], sizeof(Lanes));
      } else {
        std::memcpy(to, &channels[channel], bytes);
      }
    }
  }
}

RIFFLE_SIMD void to_grayscale(float* planes, int pixels) {
  float* __restrict red = planes;
  float* __restrict green = planes + pixels;
  float* __restrict blue = planes + 2 * pixels;
  for (int i = 0; i < pixels; ++i) {
    const float gray = gray_of(red[i], green[i], blue[i]);
    red[i] = gray;
    green[i] = gray;
    blue[i] = gray;
  }
}

}  // namespace riffle

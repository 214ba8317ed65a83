#include "riffle/augment/crop_resize.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstring>

#include "riffle/augment/imagenet_scale.h"
#include "riffle/augment/row_sum.h"
#include "riffle/augment/simd.h"

namespace riffle {
namespace {

// A pixel as one vector: red, green, blue and a fourth lane that is not used.
using Pixel = float __attribute__((vector_size(16)));
using PixelBytes = std::uint8_t __attribute__((vector_size(4)));

Pixel load(const float* from) {
  Pixel pixel;
  std::memcpy(&pixel, from, sizeof pixel);
  return pixel;
}

void store(const Pixel& pixel, float* to) { std::memcpy(to, &pixel, sizeof pixel); }

void row_to_float(const std::uint8_t* row, int width, float* pixels) {
  for (int x = 0; x < width; ++x) {
    PixelBytes bytes{};
    // Three bytes in one read of four; the picture's last pixel has no fourth.
    if (x + 1 < width) {
      std::memcpy(&bytes, row + 3 * x, 4);
    } else {
      std::memcpy(&bytes, row + 3 * x, 3);
    }
    store(__builtin_convertvector(bytes, Pixel) * kByteScale, pixels + 4 * x);
  }
}

// kTaps 0: axis.taps.
template <int kTaps>
void resize_row(const float* pixels, const ResizeAxis& axis, bool flip, int width, float* wide) {
  const int taps = kTaps > 0 ? kTaps : axis.taps;
  for (int x = 0; x < width; ++x) {
    const float* from = pixels + 4 * axis.first[x];
    const float* weights = axis.weights.data() + static_cast<std::ptrdiff_t>(x) * taps;
    Pixel sum = load(from) * weights[0];
    for (int k = 1; k < taps; ++k) sum += load(from + 4 * k) * weights[k];
    store(sum, wide + 4 * (flip ? width - 1 - x : x));
  }
}

RIFFLE_SIMD void split_planes(const float* __restrict wide, int width, float* __restrict red,
                              float* __restrict green, float* __restrict blue) {
  for (int x = 0; x < width; ++x) {
    red[x] = wide[4 * x];
    green[x] = wide[4 * x + 1];
    blue[x] = wide[4 * x + 2];
  }
}

}  // namespace

void ResizeAxis::set(int in, int out) {
  const double scale = static_cast<double>(in) / out;
  const double support = std::max(scale, 1.0);
  taps = std::min(in, static_cast<int>(std::ceil(2 * support)));
  first.resize(out);
  weights.resize(static_cast<std::size_t>(out) * taps);
  for (int i = 0; i < out; ++i) {
    const double centre = (i + 0.5) * scale;
    first[i] = std::clamp(static_cast<int>(std::floor(centre - support + 0.5)), 0, in - taps);
    float* weight = weights.data() + static_cast<std::ptrdiff_t>(i) * taps;
    double total = 0;
    for (int k = 0; k < taps; ++k) {
      const double distance = std::abs(first[i] + k + 0.5 - centre) / support;
      const double value = std::max(0.0, 1.0 - distance);
      weight[k] = static_cast<float>(value);
      total += value;
    }
    const auto share = static_cast<float>(1.0 / total);
    for (int k = 0; k < taps; ++k) weight[k] *= share;
  }
}

void crop_resize(const std::uint8_t* picture, int picture_width, const CropBox& box, bool flip,
                 int height, int width, float* planes, CropScratch& scratch) {
  const ResizeAxis& across = scratch.horizontal;
  const ResizeAxis& down = scratch.vertical;
  scratch.horizontal.set(box.width, width);
  scratch.vertical.set(box.height, height);
  scratch.pixels.resize(4 * static_cast<std::size_t>(box.width));
  scratch.wide.resize(4 * static_cast<std::size_t>(width));
  scratch.rows.resize(3 * static_cast<std::size_t>(width) * box.height);
  scratch.taps.resize(down.taps);

  const auto resize = across.taps == 2   ? resize_row<2>
                      : across.taps == 3 ? resize_row<3>
                      : across.taps == 4 ? resize_row<4>
                                         : resize_row<0>;
  for (int y = 0; y < box.height; ++y) {
    const auto offset = (static_cast<std::ptrdiff_t>(box.top) + y) * picture_width + box.left;
    row_to_float(picture + 3 * offset, box.width, scratch.pixels.data());
    resize(scratch.pixels.data(), across, flip, width, scratch.wide.data());
    float* row = scratch.rows.data() + static_cast<std::ptrdiff_t>(y) * 3 * width;
    split_planes(scratch.wide.data(), width, row, row + width, row + 2 * width);
  }

  for (int y = 0; y < height; ++y) {
    for (int channel = 0; channel < 3; ++channel) {
      for (int k = 0; k < down.taps; ++k) {
        const auto row = static_cast<std::ptrdiff_t>(down.first[y]) + k;
        scratch.taps[k] = scratch.rows.data() + (row * 3 + channel) * width;
      }
      sum_rows(scratch.taps.data(),
               down.weights.data() + static_cast<std::ptrdiff_t>(y) * down.taps, down.taps, width,
               planes + (static_cast<std::ptrdiff_t>(channel) * height + y) * width);
    }
  }
}

}  // namespace riffle

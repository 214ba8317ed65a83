#include "riffle/augment/blur.h"

#include <algorithm>
#include <cmath>
#include <cstddef>

#include "riffle/augment/row_sum.h"

namespace riffle {
namespace {

// The kernel with `half` taps on either side of the middle one, less the ends that do not matter.
// Returns how many taps are left on a side.
int set_kernel(int half, float sigma, std::vector<float>& weights) {
  const auto bell = [sigma](int k) {
    const double distance = k / static_cast<double>(sigma);
    return std::exp(-0.5 * distance * distance);
  };
  const double negligible = std::ldexp(1.0, -kTapBits);
  int radius = 0;
  double total = 1.0;
  for (int k = 1; k <= half && bell(k) >= negligible; ++k) {
    radius = k;
    total += 2 * bell(k);
  }
  weights.resize(2 * static_cast<std::size_t>(radius) + 1);
  for (int k = 0; k <= radius; ++k) {
    weights[radius - k] = weights[radius + k] = static_cast<float>(bell(k) / total);
  }
  return radius;
}

// Without repeating the border itself: 2 1 | 0 1 2 ... n-1 | n-2 n-3.
int mirrored(int i, int n) {
  if (i < 0) return -i;
  return i < n ? i : 2 * (n - 1) - i;
}

}  // namespace

int blur_kernel_size(int side) { return std::max(3, (side / 10) | 1); }

void gaussian_blur(float* planes, int height, int width, int kernel_size, float sigma,
                   BlurScratch& scratch) {
  const int radius = set_kernel(kernel_size / 2, sigma, scratch.weights);
  if (radius == 0) return;
  const int taps = 2 * radius + 1;
  const auto& weights = scratch.weights;

  scratch.taps.resize(taps);
  scratch.row.resize(static_cast<std::size_t>(width) + 2 * radius);
  scratch.plane.resize(static_cast<std::size_t>(height) * width);
  for (int channel = 0; channel < 3; ++channel) {
    float* plane = planes + static_cast<std::ptrdiff_t>(channel) * height * width;
    for (int k = 0; k < taps; ++k) scratch.taps[k] = scratch.row.data() + k;
    for (int y = 0; y < height; ++y) {
      const float* row = plane + static_cast<std::ptrdiff_t>(y) * width;
      std::copy(row, row + width, scratch.row.begin() + radius);
      for (int k = 1; k <= radius; ++k) {
        scratch.row[radius - k] = row[mirrored(-k, width)];
        scratch.row[radius + width - 1 + k] = row[mirrored(width - 1 + k, width)];
      }
      sum_rows(scratch.taps.data(), weights.data(), taps, width,
               scratch.plane.data() + static_cast<std::ptrdiff_t>(y) * width);
    }
    for (int y = 0; y < height; ++y) {
      for (int k = 0; k < taps; ++k) {
        const std::ptrdiff_t from = mirrored(y + k - radius, height);
        scratch.taps[k] = scratch.plane.data() + from * width;
      }
      sum_rows(scratch.taps.data(), weights.data(), taps, width,
               plane + static_cast<std::ptrdiff_t>(y) * width);
    }
  }
}

}  // namespace riffle

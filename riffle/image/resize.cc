#include "riffle/image/resize.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <stdexcept>
#include <vector>

namespace riffle {
namespace {

// Four floats that the compiler keeps in one vector register on any machine.
using Lanes [[gnu::vector_size(16)]] = float;

// For each output position along one axis, the input positions whose weighted mean it is.
struct Taps {
  struct Range {
    int first;
    int count;
    std::size_t weights;  // where its weights begin
  };
  std::vector<Range> ranges;
  std::vector<float> weights;

  int begin() const { return ranges.front().first; }
  int end() const { return ranges.back().first + ranges.back().count; }
};

// Returns the taps for `count` outputs of an axis of `input` pixels, each of which covers `scale`
// of those; the first begins at `offset` + `from` * `scale`.
Taps triangle_taps(int input, double scale, double offset, std::int64_t from, int count) {
  const double reach = std::max(scale, 1.0);
  Taps taps;
  taps.ranges.reserve(static_cast<std::size_t>(count));
  std::vector<double> column;
  for (int i = 0; i < count; ++i) {
    const double centre = offset + (static_cast<double>(from + i) + 0.5) * scale;
    int first = std::max(0, static_cast<int>(centre - reach + 0.5));
    int last = std::min(input, static_cast<int>(centre + reach + 0.5));
    const auto weight = [&](int x) {
      return std::max(0.0, 1.0 - std::abs((x + 0.5 - centre) / reach));
    };
    while (last - first > 1 && weight(first) == 0) ++first;
    while (last - first > 1 && weight(last - 1) == 0) --last;
    column.clear();
    double sum = 0;
    for (int x = first; x < last; ++x) {
      column.push_back(weight(x));
      sum += column.back();
    }
    taps.ranges.push_back({first, last - first, taps.weights.size()});
    for (const double w : column) taps.weights.push_back(static_cast<float>(w / sum));
  }
  return taps;
}

// sums[i] = the weighted sum of byte i over `taps` consecutive rows. Rows go in pairs to halve the
// traffic on `sums`.
void sum_rows(const std::uint8_t* rows, std::size_t stride, const float* weights, int taps,
              float* sums, std::size_t count) {
  int t = 0;
  if (taps % 2 == 1) {
    const float w = weights[0];
    for (std::size_t i = 0; i < count; ++i) sums[i] = w * static_cast<float>(rows[i]);
    t = 1;
  } else {
    std::fill_n(sums, count, 0.0f);
  }
  for (; t < taps; t += 2) {
    const float w0 = weights[t], w1 = weights[t + 1];
    const std::uint8_t* row0 = rows + static_cast<std::size_t>(t) * stride;
    const std::uint8_t* row1 = row0 + stride;
    for (std::size_t i = 0; i < count; ++i) {
      sums[i] += w0 * static_cast<float>(row0[i]) + w1 * static_cast<float>(row1[i]);
    }
  }
}

// Makes one output row from a row of float RGB whose first pixel is input column `origin`. A pixel
// is read and written as four floats, the fourth belonging to its right neighbour, so both rows
// need one float more than their pixels.
void sum_columns(const float* row, int origin, const Taps& taps, float* out) {
  for (const auto& range : taps.ranges) {
    const float* weights = taps.weights.data() + range.weights;
    const float* in = row + static_cast<std::ptrdiff_t>(range.first - origin) * 3;
    Lanes sum{};
    for (int t = 0; t < range.count; ++t, in += 3) {
      Lanes pixel;
      std::memcpy(&pixel, in, sizeof pixel);
      sum += weights[t] * pixel;
    }
    std::memcpy(out, &sum, sizeof sum);
    out += 3;
  }
}

// Returns a picture as wide as there are taps of columns, and as high as there are of rows.
Picture resample(const Picture& picture, const Taps& columns, const Taps& rows) {
  const int origin = columns.begin();
  const auto used = static_cast<std::size_t>(columns.end() - origin) * 3;
  const auto stride = static_cast<std::size_t>(picture.width) * 3;
  const auto out_values = columns.ranges.size() * 3;

  Picture out(static_cast<int>(columns.ranges.size()), static_cast<int>(rows.ranges.size()));
  std::vector<float> tall(used + 1), narrow(out_values + 1);
  for (int y = 0; y < out.height; ++y) {
    const auto& range = rows.ranges[static_cast<std::size_t>(y)];
    sum_rows(picture.at(origin, range.first), stride, rows.weights.data() + range.weights,
             range.count, tall.data(), used);
    sum_columns(tall.data(), origin, columns, narrow.data());
    std::uint8_t* to = out.at(0, y);
    // Weights are positive and sum to 1 within rounding, so a value stays below 255.5.
    for (std::size_t i = 0; i < out_values; ++i) {
      to[i] = static_cast<std::uint8_t>(static_cast<std::int32_t>(narrow[i] + 0.5f));
    }
  }
  return out;
}

struct Cut {
  std::int64_t x, y;
  int width, height;
};

// Returns the part `cut` of the picture, resized to width x height.
Picture resample(const Picture& picture, std::int64_t width, std::int64_t height, const Cut& cut) {
  const auto scale = [](int input, std::int64_t output) {
    return static_cast<double>(input) / static_cast<double>(output);
  };
  return resample(
      picture, triangle_taps(picture.width, scale(picture.width, width), 0, cut.x, cut.width),
      triangle_taps(picture.height, scale(picture.height, height), 0, cut.y, cut.height));
}

void require_size(const Picture& picture, int width, int height) {
  if (picture.width < 1 || picture.height < 1) throw std::logic_error("cannot resize no pixels");
  if (width < 1 || height < 1) throw std::logic_error("cannot resize to no pixels");
}

// Returns half of n, rounded as Python's round(n / 2) does: to the even neighbour.
std::int64_t rounded_half(std::int64_t n) { return n / 2 + (n % 2 == 1 && n / 2 % 2 == 1 ? 1 : 0); }

}  // namespace

Picture resize(const Picture& picture, int width, int height) {
  require_size(picture, width, height);
  if (picture.width == width && picture.height == height) return picture;
  return resample(picture, width, height, {0, 0, width, height});
}

Picture resize_square(const Picture& picture, double x, double y, double side, int size) {
  require_size(picture, size, size);
  if (!(x >= 0 && y >= 0 && side > 0 && x + side <= picture.width && y + side <= picture.height)) {
    throw std::logic_error("cannot cut a square that reaches beyond the picture");
  }
  const double scale = side / size;
  return resample(picture, triangle_taps(picture.width, scale, x, 0, size),
                  triangle_taps(picture.height, scale, y, 0, size));
}

Picture fit_square(Picture picture, int size) {
  require_size(picture, size, size);
  if (picture.width == size && picture.height == size) return picture;
  const std::int64_t short_side = std::min(picture.width, picture.height);
  const std::int64_t width = std::int64_t{picture.width} * size / short_side;
  const std::int64_t height = std::int64_t{picture.height} * size / short_side;
  return resample(picture, width, height,
                  {rounded_half(width - size), rounded_half(height - size), size, size});
}

}  // namespace riffle

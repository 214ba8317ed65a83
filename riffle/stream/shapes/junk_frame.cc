#include "riffle/stream/shapes/junk_frame.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>

namespace riffle {
namespace {

using Colour = std::array<float, 3>;  // 0 to 255

constexpr float kWhite = 255;
constexpr float kGrey = 128;

Colour any_colour(Random& random) {
  return {random.uniform(0, kWhite), random.uniform(0, kWhite), random.uniform(0, kWhite)};
}

void set_pixel(std::uint8_t* pixel, const Colour& colour) {
  for (std::size_t c = 0; c < 3; ++c) {
    pixel[c] = static_cast<std::uint8_t>(std::lround(std::clamp(colour[c], 0.0f, kWhite)));
  }
}

Colour blend(const Colour& a, const Colour& b, float t) {
  return {std::lerp(a[0], b[0], t), std::lerp(a[1], b[1], t), std::lerp(a[2], b[2], t)};
}

// Fills the frame with what `colour` says of each pixel.
template <typename ColourAt>
void fill_frame(Picture& frame, const ColourAt& colour) {
  for (int y = 0; y < frame.height; ++y) {
    for (int x = 0; x < frame.width; ++x) set_pixel(frame.at(x, y), colour(x, y));
  }
}

void add_noise(Picture& frame, float sigma, Random& random) {
  for (auto& value : frame.rgb) {
    const float noisy = static_cast<float>(value) + sigma * random.normal();
    value = static_cast<std::uint8_t>(std::lround(std::clamp(noisy, 0.0f, kWhite)));
  }
}

// From 0 to 1 across the frame, in a direction drawn at random.
class FrameSlope {
 public:
  FrameSlope(const Picture& frame, Random& random) {
    const float angle = random.uniform(0, 2 * std::numbers::pi_v<float>);
    x_ = std::cos(angle) / static_cast<float>(std::max(1, frame.width - 1));
    y_ = std::sin(angle) / static_cast<float>(std::max(1, frame.height - 1));
    start_ = -std::min(0.0f, std::cos(angle)) - std::min(0.0f, std::sin(angle));
    length_ = std::abs(std::cos(angle)) + std::abs(std::sin(angle));
  }
  float at(int x, int y) const {
    return (start_ + static_cast<float>(x) * x_ + static_cast<float>(y) * y_) / length_;
  }

 private:
  float x_ = 0, y_ = 0, start_ = 0, length_ = 1;
};

// No signal: grains of one or a few pixels, coloured or grey, around a mean of its own.
void draw_noise(Picture& frame, const Picture&, Random& random) {
  const Colour mean = any_colour(random);
  const float sigma = random.uniform(40, 110);
  const bool coloured = random.chance(0.5f);
  const int grain = 1 + static_cast<int>(random.below(3));
  const int columns = (frame.width + grain - 1) / grain;
  std::vector<Colour> row(static_cast<std::size_t>(columns));
  for (int y = 0; y < frame.height; ++y) {
    if (y % grain == 0) {
      for (auto& colour : row) {
        const float grey = sigma * random.normal();
        for (std::size_t c = 0; c < 3; ++c) {
          colour[c] = mean[c] + (coloured ? sigma * random.normal() : grey);
        }
      }
    }
    for (int x = 0; x < frame.width; ++x) {
      set_pixel(frame.at(x, y), row[static_cast<std::size_t>(x / grain)]);
    }
  }
}

// A lens cap: nearly black, with a tint and the noise of the sensor.
void draw_dark(Picture& frame, const Picture&, Random& random) {
  const Colour tint = blend({0, 0, 0}, any_colour(random), random.uniform(0.01f, 0.08f));
  fill_frame(frame, [&](int, int) { return tint; });
  add_noise(frame, random.uniform(1, 8), random);
}

// Nearly white, a little darker towards one side.
void draw_overexposed(Picture& frame, const Picture&, Random& random) {
  const FrameSlope slope(frame, random);
  const Colour white = {kWhite, kWhite, kWhite};
  const Colour edge = blend(white, any_colour(random), random.uniform(0.02f, 0.2f));
  fill_frame(frame, [&](int x, int y) { return blend(white, edge, slope.at(x, y)); });
  add_noise(frame, random.uniform(0.5f, 4), random);
}

void draw_gradient(Picture& frame, const Picture&, Random& random) {
  const FrameSlope slope(frame, random);
  const Colour from = any_colour(random);
  const Colour to = any_colour(random);
  fill_frame(frame, [&](int x, int y) { return blend(from, to, slope.at(x, y)); });
}

// A decoder that lost its way: blocks, each of one colour.
void draw_blocks(Picture& frame, const Picture&, Random& random) {
  const int columns = 2 + static_cast<int>(random.below(7));
  const int rows = 2 + static_cast<int>(random.below(7));
  std::vector<Colour> colours;
  for (int i = 0; i < columns * rows; ++i) colours.push_back(any_colour(random));
  fill_frame(frame, [&](int x, int y) {
    const int block = y * rows / frame.height * columns + x * columns / frame.width;
    return colours[static_cast<std::size_t>(block)];
  });
}

// A JPEG that was cut off: below some row everything is grey, or the last row continues. Either has
// a tint, as from colour that was lost with the rest.
void draw_half_decoded(Picture& frame, const Picture& beside, Random& random) {
  constexpr float kTint = 30;
  const float cut = random.uniform(0.1f, 0.7f) * static_cast<float>(frame.height);
  const int rows = std::max(1, static_cast<int>(cut));
  const bool smeared = random.chance(0.5f);
  const Colour tint = {random.uniform(-kTint, kTint), random.uniform(-kTint, kTint),
                       random.uniform(-kTint, kTint)};
  fill_frame(frame, [&](int x, int y) {
    const std::uint8_t* from = beside.at(x, std::min(y, rows - 1));
    Colour colour = {kGrey, kGrey, kGrey};
    if (y < rows || smeared) std::copy_n(from, 3, colour.begin());
    for (std::size_t c = 0; y >= rows && c < 3; ++c) colour[c] += tint[c];
    return colour;
  });
}

// Colour bars from some place of their row on, standing or lying, over a strip of greys.
void draw_test_card(Picture& frame, const Picture&, Random& random) {
  constexpr std::uint32_t kBars = 8;  // white, yellow, cyan, green, magenta, red, blue, black
  const float light = random.uniform(120, kWhite);
  const float floor = random.uniform(0, 40);
  const float phase = random.uniform(0, kBars);
  const float repeats = random.uniform(0.6f, 1.6f);
  const float strip = random.uniform(0, 0.35f);
  const bool lying = random.chance(0.25f);
  const bool backward = random.chance(0.5f);
  fill_frame(frame, [&](int x, int y) -> Colour {
    float along = static_cast<float>(x) / static_cast<float>(frame.width);
    float across = static_cast<float>(y) / static_cast<float>(frame.height);
    if (lying) std::swap(along, across);
    if (backward) along = 1 - along;
    if (across >= 1 - strip) {
      const float grey = std::floor(along * 6) / 6 * light;
      return {grey, grey, grey};
    }
    const auto bar =
        static_cast<std::uint32_t>(phase + along * repeats * static_cast<float>(kBars)) % kBars;
    return {(bar & 2) != 0 ? floor : light, (bar & 4) != 0 ? floor : light,
            (bar & 1) != 0 ? floor : light};
  });
}

struct JunkKind {
  std::string name;
  void (*draw)(Picture& frame, const Picture& beside, Random& random);
};

const std::vector<JunkKind>& known_junk_kinds() {
  static const std::vector<JunkKind> kKinds = {
      {"noise", draw_noise},        {"dark", draw_dark},     {"overexposed", draw_overexposed},
      {"gradient", draw_gradient},  {"blocks", draw_blocks}, {"halfdecoded", draw_half_decoded},
      {"testcard", draw_test_card},
  };
  return kKinds;
}

}  // namespace

const std::vector<std::string>& junk_kinds() {
  static const std::vector<std::string> kNames = [] {
    std::vector<std::string> names;
    for (const auto& kind : known_junk_kinds()) names.push_back(kind.name);
    return names;
  }();
  return kNames;
}

Picture junk_frame(std::size_t kind, const Picture& beside, Random random) {
  Picture frame(beside.width, beside.height);
  known_junk_kinds().at(kind).draw(frame, beside, random);
  return frame;
}

}  // namespace riffle

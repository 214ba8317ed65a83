#include "apps/riffle/bench_pictures.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include "riffle/base/random.h"

namespace riffle {
namespace {

// Smooth random values between the points of a grid.
class Waves {
 public:
  Waves(int width, int height, float spacing, Random& random)
      : columns_(static_cast<int>(static_cast<float>(width) / spacing) + 2),
        spacing_(spacing),
        values_(static_cast<std::size_t>(
            columns_ * (static_cast<int>(static_cast<float>(height) / spacing) + 2))) {
    for (auto& value : values_) value = random.uniform(-1, 1);
  }

  float at(int x, int y) const {
    const float column = static_cast<float>(x) / spacing_, row = static_cast<float>(y) / spacing_;
    const int left = static_cast<int>(column), top = static_cast<int>(row);
    const float u = column - static_cast<float>(left), v = row - static_cast<float>(top);
    const auto value = [&](int i, int j) {
      return values_[static_cast<std::size_t>((top + j) * columns_ + left + i)];
    };
    return (value(0, 0) * (1 - u) + value(1, 0) * u) * (1 - v) +
           (value(0, 1) * (1 - u) + value(1, 1) * u) * v;
  }

 private:
  int columns_;
  float spacing_;
  std::vector<float> values_;
};

struct Thing {
  float x, y, radius, stretch, contrast;
  std::array<float, 3> colour;

  bool covers(float px, float py) const {
    const float dx = (px - x) / stretch, dy = py - y;
    return dx * dx + dy * dy < radius * radius;
  }
};

}  // namespace

Picture photograph_like(int width, int height, std::uint64_t seed) {
  Random random(seed, Purpose("photograph-like"), 0);
  constexpr float kFinest = 1.5f, kCoarser = 2;
  std::vector<std::pair<Waves, float>> textures;
  for (float spacing = static_cast<float>(width); spacing >= kFinest; spacing /= kCoarser) {
    textures.emplace_back(Waves(width, height, spacing, random),
                          55 * std::pow(spacing / static_cast<float>(width), -0.05f));
  }
  const Waves hue(width, height, 60, random);
  std::vector<Thing> things(14);
  for (auto& thing : things) {
    thing = {random.uniform(0, static_cast<float>(width)),
             random.uniform(0, static_cast<float>(height)),
             random.uniform(15, 90),
             random.uniform(0.4f, 2),
             random.uniform(0.2f, 1.2f),
             {random.uniform(30, 220), random.uniform(30, 220), random.uniform(30, 220)}};
  }
  things.front() = {0, 0, 1e6f, 1, 0.5f, {120, 130, 140}};  // the background

  Picture picture(width, height);
  for (int y = 0; y < height; ++y) {
    for (int x = 0; x < width; ++x) {
      const auto covers = [&](const Thing& t) {
        return t.covers(static_cast<float>(x), static_cast<float>(y));
      };
      const Thing& thing = *std::find_if(things.rbegin(), things.rend(), covers);
      float light = 0;
      for (const auto& [waves, contrast] : textures) light += contrast * waves.at(x, y);
      for (int c = 0; c < 3; ++c) {
        const float tint = 12 * hue.at(x, y) * static_cast<float>(c - 1);
        picture.at(x, y)[c] = static_cast<std::uint8_t>(std::clamp(
            thing.colour[static_cast<std::size_t>(c)] + thing.contrast * light + tint, 0.f, 255.f));
      }
    }
  }
  return picture;
}

}  // namespace riffle

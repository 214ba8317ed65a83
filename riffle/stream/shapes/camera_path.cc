#include "riffle/stream/shapes/camera_path.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace riffle {
namespace {

constexpr double kNearestSide = 0.5;

}  // namespace

CameraPath::CameraPath(Random random, int width, int height, std::int64_t frames, std::int64_t pace)
    : width_(width), height_(height), pace_(pace) {
  // A piece of the spline lies between four places.
  const std::int64_t places = (frames - 1) / pace + 4;
  places_.reserve(static_cast<std::size_t>(places));
  for (std::int64_t i = 0; i < places; ++i) {
    const double across = random.uniform();
    const double down = random.uniform();
    places_.push_back({across, down, random.uniform()});
  }
}

CameraView CameraPath::at(std::int64_t frame) const {
  const auto first = static_cast<std::size_t>(frame / pace_);
  const double t = static_cast<double>(frame % pace_) / static_cast<double>(pace_);
  const double rest = 1 - t;
  const std::array<double, 4> weights = {
      rest * rest * rest / 6, (3 * t * t * t - 6 * t * t + 4) / 6,
      (3 * rest * rest * rest - 6 * rest * rest + 4) / 6, t * t * t / 6};
  Place place{};
  for (std::size_t i = 0; i < weights.size(); ++i) {
    place.across += weights[i] * places_[first + i].across;
    place.down += weights[i] * places_[first + i].down;
    place.zoom += weights[i] * places_[first + i].zoom;
  }
  // Even steps of zoom are equal ratios.
  const double side =
      std::min(width_, height_) * std::min(1.0, std::pow(kNearestSide, 1 - place.zoom));
  // Rounding must not carry the square over the border.
  return {std::clamp(place.across, 0.0, 1.0) * (width_ - side) * (1 - 1e-9),
          std::clamp(place.down, 0.0, 1.0) * (height_ - side) * (1 - 1e-9), side};
}

}  // namespace riffle

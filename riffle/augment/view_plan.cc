#include "riffle/augment/view_plan.h"

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <type_traits>

#include "riffle/base/random.h"
#include "riffle/base/text.h"

namespace riffle {
namespace {

static_assert(std::is_trivially_copyable_v<ViewPlan>);

constexpr int kPlaceBits = 20;
constexpr int kViewBits = 1;
constexpr int kStepBits = 64 - kPlaceBits - kViewBits;

constexpr double kMinAspect = 3.0 / 4.0;
constexpr double kMaxAspect = 4.0 / 3.0;
constexpr int kCropTries = 10;

// Half to even, as Python's round().
int rounded(double value) { return static_cast<int>(std::nearbyint(value)); }

CropBox centre_crop(int height, int width) {
  CropBox box{0, 0, height, width};
  const double aspect = static_cast<double>(width) / height;
  if (aspect < kMinAspect) box.height = rounded(width / kMinAspect);
  if (aspect > kMaxAspect) box.width = rounded(height * kMaxAspect);
  box.top = (height - box.height) / 2;
  box.left = (width - box.width) / 2;
  return box;
}

// As torchvision's RandomResizedCrop.
CropBox random_crop(const AugmentConfig& config, int height, int width, Random& random) {
  static const auto kLogMin = static_cast<float>(std::log(kMinAspect));
  static const auto kLogMax = static_cast<float>(std::log(kMaxAspect));
  const double area = static_cast<double>(height) * width;
  for (int i = 0; i < kCropTries; ++i) {
    const double crop_area = area * random.uniform(static_cast<float>(config.crop_min),
                                                   static_cast<float>(config.crop_max));
    const double aspect = std::exp(static_cast<double>(random.uniform(kLogMin, kLogMax)));
    const int crop_width = rounded(std::sqrt(crop_area * aspect));
    const int crop_height = rounded(std::sqrt(crop_area / aspect));
    if (crop_width > 0 && crop_width <= width && crop_height > 0 && crop_height <= height) {
      const auto top = random.below(static_cast<std::uint64_t>(height - crop_height + 1));
      const auto left = random.below(static_cast<std::uint64_t>(width - crop_width + 1));
      return {static_cast<std::int32_t>(top), static_cast<std::int32_t>(left), crop_height,
              crop_width};
    }
  }
  return centre_crop(height, width);
}

float random_factor(double range, Random& random) {
  const auto x = static_cast<float>(range);
  return random.uniform(std::max(0.0f, 1.0f - x), 1.0f + x);
}

}  // namespace

std::uint64_t view_position(std::uint64_t step, std::int64_t place, int view) {
  if (step >> kStepBits != 0 || place < 0 || place >> kPlaceBits != 0 || view < 0 ||
      view >> kViewBits != 0) {
    throw std::out_of_range(
        cat("no random numbers for step ", step, ", place ", place, ", view ", view));
  }
  return step << (kPlaceBits + kViewBits) | static_cast<std::uint64_t>(place) << kViewBits |
         static_cast<std::uint64_t>(view);
}

ViewPlan plan_view(const AugmentConfig& config, int picture_height, int picture_width,
                   std::uint64_t seed, std::uint64_t position) {
  Random random(seed, Purpose("augment"), position);
  ViewPlan plan;
  plan.flip = random.chance(static_cast<float>(config.flip));
  plan.grayscale = random.chance(static_cast<float>(config.grayscale));
  const bool jitter = random.chance(static_cast<float>(config.jitter));
  const bool blur = random.chance(static_cast<float>(config.blur));

  plan.jitter_amount[0] = random_factor(config.brightness, random);
  plan.jitter_amount[1] = random_factor(config.contrast, random);
  plan.jitter_amount[2] = random_factor(config.saturation, random);
  plan.jitter_amount[3] =
      random.uniform(-static_cast<float>(config.hue), static_cast<float>(config.hue));

  Jitter order[4] = {Jitter::brightness, Jitter::contrast, Jitter::saturation, Jitter::hue};
  for (std::uint64_t last = 3; last > 0; --last) {
    std::swap(order[last], order[random.below(last + 1)]);
  }
  const double ranges[4] = {config.brightness, config.contrast, config.saturation, config.hue};
  for (const Jitter kind : order) {
    if (jitter && ranges[static_cast<int>(kind)] > 0) plan.jitter_order[plan.jitter_count++] = kind;
  }

  const float sigma = random.uniform(static_cast<float>(config.blur_sigma_min),
                                     static_cast<float>(config.blur_sigma_max));
  if (blur) plan.blur_sigma = sigma;

  // Last, because the number of tries differs.
  plan.crop = random_crop(config, picture_height, picture_width, random);
  return plan;
}

}  // namespace riffle

#include "riffle/augment/augment_config.h"

#include "riffle/base/error.h"
#include "riffle/base/text.h"

namespace riffle {
namespace {

constexpr std::int64_t kMinSize = 8;
constexpr std::int64_t kMaxSize = 4096;

// Written so that NaN is refused too.
void check_range(const char* key, double value, double low, double high) {
  if (!(value >= low && value <= high)) {
    throw Error(cat(key, " must be between ", low, " and ", high, ", but is ", value));
  }
}

void check_order(const char* min_key, double min, const char* max_key, double max) {
  if (min > max) {
    throw Error(cat(min_key, " (", min, ") must not be above ", max_key, " (", max, ")"));
  }
}

}  // namespace

void AugmentConfig::describe(Fields& fields) {
  fields.add("augment.size", size, "side of a view in pixels");
  fields.add("augment.crop_min", crop_min, "smallest share of the picture's area in a crop");
  fields.add("augment.crop_max", crop_max, "largest share of the picture's area in a crop");
  fields.add("augment.flip", flip, "probability of mirroring left to right");
  fields.add("augment.jitter", jitter, "probability of the four colour changes");
  fields.add("augment.brightness", brightness, "brightness factor: 1 plus or minus up to this");
  fields.add("augment.contrast", contrast, "contrast factor: 1 plus or minus up to this");
  fields.add("augment.saturation", saturation, "saturation factor: 1 plus or minus up to this");
  fields.add("augment.hue", hue, "hue shift: up to this share of the colour circle either way");
  fields.add("augment.grayscale", grayscale, "probability of losing all colour");
  fields.add("augment.blur", blur, "probability of Gaussian blur");
  fields.add("augment.blur_sigma_min", blur_sigma_min, "least blur, standard deviation in pixels");
  fields.add("augment.blur_sigma_max", blur_sigma_max, "most blur, standard deviation in pixels");
  fields.add("augment.temporal", temporal,
             "the two views are of two frames of a clip, at most this many frames apart, from one "
             "stream batch; 0: of one frame. The buffer keeps two pictures of each sample then");
}

void AugmentConfig::validate() const {
  if (size < kMinSize || size > kMaxSize) {
    throw Error(
        cat("augment.size must be between ", kMinSize, " and ", kMaxSize, ", but is ", size));
  }
  constexpr double kMinArea = 1e-4;
  check_range("augment.crop_min", crop_min, kMinArea, 1.0);
  check_range("augment.crop_max", crop_max, kMinArea, 1.0);
  check_order("augment.crop_min", crop_min, "augment.crop_max", crop_max);
  check_range("augment.flip", flip, 0.0, 1.0);
  check_range("augment.jitter", jitter, 0.0, 1.0);
  constexpr double kMaxChange = 10.0;
  check_range("augment.brightness", brightness, 0.0, kMaxChange);
  check_range("augment.contrast", contrast, 0.0, kMaxChange);
  check_range("augment.saturation", saturation, 0.0, kMaxChange);
  check_range("augment.hue", hue, 0.0, 0.5);
  check_range("augment.grayscale", grayscale, 0.0, 1.0);
  check_range("augment.blur", blur, 0.0, 1.0);
  constexpr double kMinSigma = 1e-3;
  constexpr double kMaxSigma = 1e3;
  check_range("augment.blur_sigma_min", blur_sigma_min, kMinSigma, kMaxSigma);
  check_range("augment.blur_sigma_max", blur_sigma_max, kMinSigma, kMaxSigma);
  check_order("augment.blur_sigma_min", blur_sigma_min, "augment.blur_sigma_max", blur_sigma_max);
  if (temporal < 0) {
    throw Error(cat("augment.temporal must be 0 (views of one frame) or more, but is ", temporal));
  }
}

AugmentConfig probe_training_augmentation(std::int64_t size) {
  AugmentConfig config;
  config.size = size;
  config.crop_min = 0.08;
  config.jitter = 0.0;
  config.grayscale = 0.0;
  config.blur = 0.0;
  return config;
}

AugmentConfig no_augmentation(std::int64_t size) {
  AugmentConfig config;
  config.size = size;
  config.crop_min = config.crop_max = 1.0;
  config.flip = config.jitter = config.grayscale = config.blur = 0.0;
  return config;
}

}  // namespace riffle

// How a picture becomes two views. Defaults are SimSiam's for ImageNet.
#pragma once

#include <cstdint>

#include "riffle/base/fields.h"

namespace riffle {

struct AugmentConfig {
  std::int64_t size = 224;  // side of a view, px
  double crop_min = 0.2;    // least share of the picture's area that a crop covers
  double crop_max = 1.0;    // largest share
  double flip = 0.5;        // probability
  double jitter = 0.8;      // probability
  double brightness = 0.4;  // x: the factor is uniform in [max(0, 1 - x), 1 + x]
  double contrast = 0.4;
  double saturation = 0.4;
  double hue = 0.1;        // h: the shift is uniform in [-h, h], in turns of the colour circle
  double grayscale = 0.2;  // probability
  double blur = 0.5;       // probability
  double blur_sigma_min = 0.1;
  double blur_sigma_max = 2.0;
  // The two views are of two frames of a clip at most this many frames apart; 0: of one frame.
  std::int64_t temporal = 0;

  void describe(Fields& fields);
  // Throws Error naming the key whose value makes no sense.
  void validate() const;
};

// Returns what a linear probe trains on: a random crop of torchvision's default range and the flip,
// nothing else.
AugmentConfig probe_training_augmentation(std::int64_t size);

// Returns no augmentation: the whole picture fitted to a view, nothing random.
AugmentConfig no_augmentation(std::int64_t size);

}  // namespace riffle

// Brings pictures to the scale on which networks see them.
#pragma once

#include <ATen/core/Tensor.h>

#include "riffle/augment/imagenet_scale.h"

namespace riffle {

// Writes three planes of values in [0, 1] to `out`, normalised, three channels a pixel.
void normalize_planes(const float* planes, int pixels, float* out);

// Returns pictures without augmentation, normalised the same way: what probes see.
// [n, height, width, 3] uint8 -> [n, 3, height, width] float32, channels-last, on the same device.
// On the CPU one pass on LibTorch's threads, for contiguous pictures: any other tensor there throws
// std::invalid_argument.
at::Tensor normalize(const at::Tensor& pictures);

// Returns the same from torch's operations alone, on any device.
at::Tensor normalize_composed(const at::Tensor& pictures);

// Throws std::invalid_argument unless `pictures` is [n, height, width, 3] uint8, contiguous, on the
// CPU.
void check_pictures(const at::Tensor& pictures);

}  // namespace riffle

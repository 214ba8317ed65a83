// Pictures on the scale on which networks see them.
#pragma once

#include <ATen/core/Tensor.h>

#include "riffle/augment/imagenet_scale.h"

namespace riffle {

// Three planes of values in [0, 1], one after the other, to `out`: normalised, three channels a
// pixel.
void normalize_planes(const float* planes, int pixels, float* out);

// Pictures without augmentation, normalised the same way: what probes see.
// [n, height, width, 3] uint8 -> [n, 3, height, width] float32, channels-last, on the same device.
// On the CPU in one go on LibTorch's threads, contiguous pictures only: any other tensor there gets
// std::invalid_argument.
at::Tensor normalize(const at::Tensor& pictures);

// The same from torch's operations alone, on any device.
at::Tensor normalize_composed(const at::Tensor& pictures);

// Throws std::invalid_argument unless `pictures` is [n, height, width, 3] uint8, contiguous, on the
// CPU.
void check_pictures(const at::Tensor& pictures);

}  // namespace riffle

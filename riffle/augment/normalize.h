// Pictures on the scale on which networks see them.
#pragma once

#include <ATen/core/Tensor.h>

#include "riffle/augment/imagenet_scale.h"

namespace riffle {

// Three planes of values in [0, 1], one after the other, to `out`: normalised, three channels a
// pixel.
void normalize_planes(const float* planes, int pixels, float* out);

// Pictures without augmentation, normalised the same way: what probes and features on arrival see.
// On LibTorch's threads. [n, height, width, 3] uint8, contiguous, on the CPU -> [n, 3, height,
// width] float32, channels-last. Any other tensor gets std::invalid_argument.
at::Tensor normalize(const at::Tensor& pictures);

// Throws std::invalid_argument unless `pictures` is [n, height, width, 3] uint8, contiguous, on the
// CPU.
void check_pictures(const at::Tensor& pictures);

}  // namespace riffle

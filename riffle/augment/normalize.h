// The scale on which networks see pictures: ImageNet's mean and standard deviation per channel, of
// values in [0, 1].
#pragma once

#include <ATen/core/Tensor.h>

namespace riffle {

inline constexpr float kMean[3] = {0.485f, 0.456f, 0.406f};
inline constexpr float kStd[3] = {0.229f, 0.224f, 0.225f};

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

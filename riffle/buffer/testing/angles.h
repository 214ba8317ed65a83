// Features for tests that can be seen at a glance.
#pragma once

#include <cmath>
#include <cstdint>
#include <vector>

#include <ATen/ATen.h>

namespace riffle {

// Points on the unit circle, by their angle in degrees: small differences are near, and 180 is the
// farthest.
inline at::Tensor angles(const std::vector<double>& degrees) {
  at::Tensor features = at::empty({static_cast<std::int64_t>(degrees.size()), 2});
  float* out = features.mutable_data_ptr<float>();
  for (const double degree : degrees) {
    *out++ = static_cast<float>(std::cos(degree * M_PI / 180));
    *out++ = static_cast<float>(std::sin(degree * M_PI / 180));
  }
  return features;
}

}  // namespace riffle

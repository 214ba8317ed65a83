// ImageNet's mean and standard deviation per channel, of values in [0, 1].
#pragma once

namespace riffle {

inline constexpr float kMean[3] = {0.485f, 0.456f, 0.406f};
inline constexpr float kStd[3] = {0.229f, 0.224f, 0.225f};

}  // namespace riffle

// From the bytes of a picture to the scale on which networks see it.
#pragma once

namespace riffle {

// Brings a byte to [0, 1].
inline constexpr float kByteScale = 1.0f / 255.0f;

// ImageNet's mean and standard deviation per channel, of values in [0, 1].
inline constexpr float kMean[3] = {0.485f, 0.456f, 0.406f};
inline constexpr float kStd[3] = {0.229f, 0.224f, 0.225f};

}  // namespace riffle

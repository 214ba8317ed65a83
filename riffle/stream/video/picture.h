// A decoded frame of FFmpeg as an upright RGB picture.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>

#include "riffle/image/picture.h"

struct AVFrame;

namespace riffle {

// Returns the orientation, as EXIF counts it (1 to 8), that a film's display matrix asks for; 1 if
// it turns by anything but quarters.
int video_orientation(std::span<const std::int32_t, 9> display_matrix);

// Keeps its tables from frame to frame. Not thread-safe.
class VideoPicture {
 public:
  VideoPicture();
  ~VideoPicture();

  // Scales a frame whose short side is longer than `short_side` down to it (0: never), then turns
  // it upright. Returns nothing if its kind of pixels cannot be converted.
  std::optional<Picture> convert(const AVFrame& frame, int short_side, int orientation);

 private:
  struct Scaler;
  std::unique_ptr<Scaler> scaler_;
};

}  // namespace riffle

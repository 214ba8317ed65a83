// A decoded frame of FFmpeg as an upright RGB picture.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>

#include "riffle/image/picture.h"

struct AVFrame;

namespace riffle {

// The way up, as EXIF counts it (1 to 8), that a film's display matrix asks for; 1 where it turns
// by anything but quarters.
int video_orientation(std::span<const std::int32_t, 9> display_matrix);

// Keeps its tables from frame to frame. Used by one thread.
class VideoPicture {
 public:
  VideoPicture();
  ~VideoPicture();

  // A frame whose short side is longer than `short_side` is scaled down to it (0: never), then
  // turned upright. Nothing for a kind of pixels that cannot be converted.
  std::optional<Picture> convert(const AVFrame& frame, int short_side, int orientation);

 private:
  struct Scaler;
  std::unique_ptr<Scaler> scaler_;
};

}  // namespace riffle

// A smooth random path of a camera over a still picture: it pans and zooms, and never sees beyond
// the border.
#pragma once

#include <cstdint>
#include <vector>

#include "riffle/base/random.h"

namespace riffle {

// The part of the picture that the camera sees, in pixels.
struct CameraView {
  double x, y;  // upper left corner
  double side;
};

// A cubic B-spline through random places, so position, speed and acceleration have no jumps. The
// square it sees has from half to the whole of the picture's short side. The camera takes `pace`
// frames from one place to the next, however long the clip is: a longer clip sees more.
class CameraPath {
 public:
  CameraPath(Random random, int width, int height, std::int64_t frames, std::int64_t pace);

  // Requires 0 <= frame < frames.
  CameraView at(std::int64_t frame) const;

 private:
  struct Place {
    double across, down;  // 0: at the left or upper border, 1: at the opposite one
    double zoom;          // 0: nearest, 1: farthest
  };

  int width_, height_;
  std::int64_t pace_;
  std::vector<Place> places_;
};

}  // namespace riffle

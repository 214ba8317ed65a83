// Cuts a box out of an 8-bit picture and resizes it to a view.
#pragma once

#include <cstdint>
#include <vector>

#include "riffle/augment/view_plan.h"

namespace riffle {

// How each place i of a resized axis is computed from `taps` neighbouring places of the original
// one, the first at first[i].
struct ResizeAxis {
  int taps = 0;
  std::vector<int> first;
  std::vector<float> weights;  // [out, taps]

  // Bilinear with antialiasing: a triangle whose half width is one place of the coarser of the two
  // grids. As torch's interpolate(mode="bilinear", antialias=True, align_corners=False).
  void set(int in, int out);
};

// Memory that calls of one thread share, so that a view allocates nothing.
struct CropScratch {
  ResizeAxis horizontal;
  ResizeAxis vertical;
  // One row of the crop, four floats a pixel.
  std::vector<float> pixels;
  // One row of the view, four floats a pixel.
  std::vector<float> wide;
  // Every row of the crop at the view's width, three planes a row.
  std::vector<float> rows;
  // Rows that make up one row of the view.
  std::vector<const float*> taps;
};

// Writes three planes of height x width values in [0, 1], mirrored left to right with `flip`.
// `picture` is interleaved RGB, `picture_width` pixels a row. Requires `box` to lie within it.
void crop_resize(const std::uint8_t* picture, int picture_width, const CropBox& box, bool flip,
                 int height, int width, float* planes, CropScratch& scratch);

}  // namespace riffle

// Renders one view of one picture, as its plan says: crop, resize, flip, jitter, grayscale, blur,
// normalise.
//
// Thread-safe. Memory for intermediate planes belongs to the calling thread and is reused: from the
// second view of a size on, nothing is allocated.
#pragma once

#include <cstdint>

#include "riffle/augment/view_plan.h"

namespace riffle {

// Writes size x size pixels to `out`, three channels each. `picture` is interleaved RGB,
// `picture_width` pixels a row. Requires the plan's crop to lie within it.
void render_view(const std::uint8_t* picture, int picture_width, const ViewPlan& plan, int size,
                 float* out);

}  // namespace riffle

// One view of one picture, as its plan says: crop, resize, flip, jitter, grayscale, blur,
// normalise.
//
// Thread-safe. Memory for intermediate planes belongs to the calling thread and is reused: from the
// second view of a size on, nothing is allocated.
#pragma once

#include <cstdint>

#include "riffle/augment/view_plan.h"

namespace riffle {

// `picture` is interleaved RGB, `picture_width` pixels a row; the plan's crop must lie within it.
// Writes size x size pixels to `out`, three channels each.
void render_view(const std::uint8_t* picture, int picture_width, const ViewPlan& plan, int size,
                 float* out);

}  // namespace riffle

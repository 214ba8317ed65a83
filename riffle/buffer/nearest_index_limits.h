// What host and device code of the nearest-neighbour index agree on.
#pragma once

namespace riffle {

// Nearest rows that can be remembered per row.
constexpr int kMaxNeighbours = 16;

// The squared length up to which a blend of old and new feature is taken for rounding errors: what
// two opposite directions leave at momentum 0.5.
constexpr double kCancelled = 1e-10;

}  // namespace riffle

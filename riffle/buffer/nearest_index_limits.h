// What host and device code of the nearest-neighbour index agree on.
#pragma once

namespace riffle {

// Nearest rows that can be remembered per row.
constexpr int kMaxNeighbours = 16;

}  // namespace riffle

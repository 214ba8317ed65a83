// Pictures for a benchmark that has no photographs at hand, as costly to decode as photographs are.
#pragma once

#include <cstdint>

#include "riffle/image/picture.h"

namespace riffle {

// Returns soft light and things with hard edges, each with a texture in many scales whose contrast
// falls with its fineness as in photographs. The same for the same seed.
Picture photograph_like(int width, int height, std::uint64_t seed);

}  // namespace riffle

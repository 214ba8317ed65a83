// The wanted samples of a stream, in its order. A part of `lifelong`, not a shape that a user can
// name.
#pragma once

#include <functional>

#include "riffle/stream/shapes/shape.h"

namespace riffle {

// Requires that `wanted` depends on the sample alone.
std::unique_ptr<Stream> select(std::unique_ptr<Stream> below,
                               std::function<bool(const Sample&)> wanted);

}  // namespace riffle

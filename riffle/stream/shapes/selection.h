// The wanted samples of a stream, in its order. A part of `lifelong`, not a shape that a user can
// name.
#pragma once

#include <functional>

#include "riffle/stream/shapes/shape.h"

namespace riffle {

// Requires that `wanted` judges by label and key. What is not wanted is not decoded where the
// stream below can tell (Stream::keep_only()).
std::unique_ptr<Stream> select(std::unique_ptr<Stream> below,
                               std::function<bool(const Sample&)> wanted);

}  // namespace riffle

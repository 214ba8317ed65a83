// Only those samples of a stream that are wanted, in its order. No shape of its own: `lifelong` is
// made of it.
#pragma once

#include <functional>

#include "riffle/stream/shapes/shape.h"

namespace riffle {

// `wanted` must be a function of the sample alone.
std::unique_ptr<Stream> select(std::unique_ptr<Stream> below,
                               std::function<bool(const Sample&)> wanted);

}  // namespace riffle

// loop:times=N plays the stream N times, one after the other; 0 (the default): forever.
//
// A clip that comes again is the same clip. An empty stream ends at once.
#pragma once

#include "riffle/stream/shapes/shape.h"

namespace riffle {

std::unique_ptr<Stream> looped(std::unique_ptr<Stream> below, std::int64_t times);

std::unique_ptr<Stream> shape_loop(Uri& options, const StreamFactory& below);

}  // namespace riffle

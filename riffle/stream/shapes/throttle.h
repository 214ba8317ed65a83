// throttle:rate=R gives at most R samples a second, by the clock: a slow line, a camera's rate.
//
// A reader that comes late catches up for a tenth of a second at most; what it missed beyond that
// is not made up for. stop() ends the wait.
#pragma once

#include "riffle/stream/shapes/shape.h"

namespace riffle {

std::unique_ptr<Stream> shape_throttle(Uri& options, const StreamFactory& below);

}  // namespace riffle

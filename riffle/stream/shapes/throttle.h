// throttle:rate=R gives at most R samples per second, by the clock: a slow line, a camera's rate.
//
// A late reader catches up for at most a tenth of a second; what it missed beyond that is lost.
// stop() ends the wait.
#pragma once

#include "riffle/stream/shapes/shape.h"

namespace riffle {

std::unique_ptr<Stream> shape_throttle(Uri& options, const StreamFactory& below);

}  // namespace riffle

// limit:samples=N ends the stream after N samples.
#pragma once

#include "riffle/stream/shapes/shape.h"

namespace riffle {

std::unique_ptr<Stream> shape_limit(Uri& options, const StreamFactory& below);

}  // namespace riffle

// subsample:every=N gives the first of every N samples and drops the others.
//
// Samples that are dropped are still read and decoded.
#pragma once

#include "riffle/stream/shapes/shape.h"

namespace riffle {

std::unique_ptr<Stream> shape_subsample(Uri& options, const StreamFactory& below);

}  // namespace riffle

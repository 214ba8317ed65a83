// subsample:every=N gives the first of every N samples and drops the others.
//
// What is dropped is read and decoded all the same.
#pragma once

#include "riffle/stream/shapes/shape.h"

namespace riffle {

std::unique_ptr<Stream> shape_subsample(Uri& options, const StreamFactory& below);

}  // namespace riffle

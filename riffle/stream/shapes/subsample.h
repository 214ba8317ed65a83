// subsample:every=N,pick=first,seed=0 gives one of every N samples, the first or (pick=random) any,
// and drops the others. A last few that are less than N give one if it is among them.
//
// Samples that are dropped are still read and decoded.
#pragma once

#include "riffle/stream/shapes/shape.h"

namespace riffle {

std::unique_ptr<Stream> shape_subsample(Uri& options, const StreamFactory& below);

}  // namespace riffle

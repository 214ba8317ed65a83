// mix:URI[,share=0.5][,seed=0] mixes in the samples of a second stream.
//
//   share   of the samples that come from the second stream, on average
//   seed    of the choice which
//
// If the second stream ends, the first continues alone; if the first ends, so does the whole. Each
// keeps its order. Clips are renumbered so that none is in both. skipped() counts both.
#pragma once

#include "riffle/stream/shapes/shape.h"

namespace riffle {

std::unique_ptr<Stream> shape_mix(Uri& options, const StreamFactory& below);

}  // namespace riffle

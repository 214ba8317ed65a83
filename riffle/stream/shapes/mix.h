// mix:URI[,share=0.5][,seed=0] mixes in the samples of a second stream.
//
//   share   how many of the samples come from the second stream, on average
//   seed    which ones
//
// When the second stream ends, the first goes on alone; when the first ends, so does the whole. The
// order in each is kept. Clips are numbered anew so that none is in both. skipped() counts both.
#pragma once

#include "riffle/stream/shapes/shape.h"

namespace riffle {

std::unique_ptr<Stream> shape_mix(Uri& options, const StreamFactory& below);

}  // namespace riffle

// junk:share=0.2,kind=mixed,run=1,seed=0 puts junk between the samples: glitches of a camera, what
// a crawl brings along (junk_frame.h).
//
//   share   how much of what comes is junk, on average: less than 1
//   kind    noise, dark, overexposed, gradient, blocks, halfdecoded, testcard; mixed: each frame
//           one of them, all equally often
//   run     junk comes in stretches of N frames
//   seed    of which samples are junk and of what they show
//
// Junk is inserted: every sample of the stream below still comes, in its order, and 1 / (1 - share)
// times as many samples come in all. A junk frame has the size of the picture that follows it, of
// which `halfdecoded` shows the upper part; it has the label kJunkLabel and no clip.
//
// It belongs around `clips` and `lifelong`, which would make clips of junk, or not know its label.
#pragma once

#include "riffle/stream/shapes/shape.h"

namespace riffle {

// By which junk can be told from the stream's own samples, in metrics and studies.
inline constexpr const char* kJunkLabel = "junk";

std::unique_ptr<Stream> shape_junk(Uri& options, const StreamFactory& below);

}  // namespace riffle

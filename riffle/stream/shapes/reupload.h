// reupload:share=0.2,window=1000,seed=0 brings pictures again that came lately, as people upload
// them once more: cropped a little, lighter or darker, saved as a JPEG of lower quality.
//
//   share    how much of what comes is such pictures, on average: less than 1
//   window   they are among the last N samples of the stream below
//   seed     of when which one comes, and of what was done to it
//
// They are inserted: every sample of the stream below still comes, in its order. Each has the label
// of the picture it was, and a clip of its own (none if that had none: `clips` around this makes a
// clip of it).
//
// At most 2 * window pictures are held. After seek() they are read again.
#pragma once

#include "riffle/stream/shapes/shape.h"

namespace riffle {

std::unique_ptr<Stream> shape_reupload(Uri& options, const StreamFactory& below);

}  // namespace riffle

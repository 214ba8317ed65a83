// Orders that no stream could deliver, for reference only.
//
//   shuffle:window=262144,memory=1024,seed=0       at random
//   decorrelate:window=262144,memory=1024,seed=0   at random, and no two neighbours from one clip
//                                                  while another clip is left
//
//   window   samples that are put into a new order together; the windows follow one another
//   memory   MiB of decoded pictures that may be held. The order does not depend on it
//   seed     of the order; each window has its own
//
// A window is read to its end, once, before its first sample is given. Pictures beyond the memory
// wait in temporary files (TMPDIR) of up to 512 cells, which are written and read back from
// beginning to end, not by random access; besides, the pictures of one cell, at least 1,024, are
// held. After seek() the window is read again from its start.
//
// Around `loop`, with a window as long as the data set, shuffle gives epochs of their own order.
#pragma once

#include "riffle/stream/shapes/shape.h"

namespace riffle {

std::unique_ptr<Stream> shape_shuffle(Uri& options, const StreamFactory& below);
std::unique_ptr<Stream> shape_decorrelate(Uri& options, const StreamFactory& below);

}  // namespace riffle

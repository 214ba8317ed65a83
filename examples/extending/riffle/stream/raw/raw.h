// Frames without compression, one after the other in a file: 8-bit RGB, rows from the top.
//
//   raw:FILE?width=64&height=48
//
// All frames are one clip. What is left at the end of the file, less than a frame, is skipped.
#pragma once

#include <memory>

#include "riffle/stream/stream.h"
#include "riffle/stream/uri.h"

namespace riffle {

// Throws Error for a file that cannot be read or does not hold a single frame.
std::unique_ptr<Stream> open_raw(Uri& uri);

}  // namespace riffle

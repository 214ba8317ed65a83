// Frames at random places of each film, in order of time: the paper's clips. For `clips`.
#pragma once

#include <cstdint>
#include <memory>

#include "riffle/stream/stream.h"

namespace riffle {

// Gives `length` frames of each clip below, every choice of them being equally likely; all of a
// shorter one. Stills pass unchanged. A clip is read to its end before its first frame is given,
// with at most `length` frames held, so it must have an end. One whose first frame comes again, as
// in a loop, begins again, with other frames. Clips are numbered from 0.
std::unique_ptr<Stream> random_frames(std::unique_ptr<Stream> below, std::int64_t length,
                                      std::uint64_t seed);

}  // namespace riffle

// What a buffer holds, at a glance.
#pragma once

#include "riffle/buffer/replay_buffer.h"
#include "riffle/image/picture.h"

namespace riffle {

// Returns some pictures of the buffer on one sheet, the oldest first, evenly over all ages.
// O(size).
Picture buffer_sheet(const ReplayBuffer& buffer);

}  // namespace riffle

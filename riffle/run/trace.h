// Finds samples of a buffer again in the stream that they came from: their names, and their
// pictures at full size.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "riffle/image/picture.h"
#include "riffle/stream/stream.h"

namespace riffle {

struct WantedOriginal {
  // Sample::index.
  std::uint64_t index = 0;
  // As the buffer keeps it.
  Picture stored;
};

// Reads the stream, which must be at its beginning, up to the last index wanted, and calls
// use(i, sample) for each wanted[i] whose picture is still the one that was stored, at that size; a
// stored JPEG may differ a little. Returns their number. Shows progress.
std::size_t find_originals(Stream& stream, const std::vector<WantedOriginal>& wanted,
                           const std::function<void(std::size_t i, Sample& sample)>& use);

}  // namespace riffle

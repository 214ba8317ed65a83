// Which lines a run of months keeps: the older they are, the fewer.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>

namespace riffle {

struct Thinning {
  // Updates between two lines.
  std::int64_t every = 1;
  // Lines; 0: all are kept.
  std::int64_t dense = 0;

  // Returns the index of an update's line.
  std::int64_t line_of(std::int64_t update) const { return update / every; }

  // Up to an age of 2 * `dense` lines all are kept, up to 4 * `dense` every 2nd, and so on.
  bool keeps(std::int64_t line, std::int64_t age) const {
    if (dense == 0) return true;
    const auto stride =
        std::bit_floor(static_cast<std::uint64_t>(std::max<std::int64_t>(1, age / dense)));
    return static_cast<std::uint64_t>(line) % stride == 0;
  }
};

}  // namespace riffle

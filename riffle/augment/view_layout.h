// How views lie in memory for the first convolution of a network. All layouts are channels last.
#pragma once

#include <cstdint>
#include <vector>

namespace riffle {

enum class ViewLayout {
  // [n, 3, size, size].
  plain,
  // [n, 8, size, size]: the last five channels are 0. Tensor cores like whole groups of eight.
  padded,
  // [n, 16, size / 2 + 3, size / 2 + 3]: each 2 x 2 pixels are one of 12 channels, in the order
  // (row, column, colour), and 4 that are 0; two cells of 0 before and one after each axis. A 7x7
  // convolution with stride 2 and padding 3 becomes one of 4x4 cells with neither, which is far
  // quicker. `size` must be even.
  folded,
};

constexpr std::int64_t kPaddedChannels = 8;
constexpr std::int64_t kFoldedChannels = 16;
constexpr std::int64_t kFoldedBefore = 2;
constexpr std::int64_t kFoldedAfter = 1;

// Returns the shape of `n` views.
inline std::vector<std::int64_t> view_shape(ViewLayout layout, std::int64_t n, std::int64_t size) {
  switch (layout) {
    case ViewLayout::plain:
      break;
    case ViewLayout::padded:
      return {n, kPaddedChannels, size, size};
    case ViewLayout::folded: {
      const std::int64_t cells = kFoldedBefore + size / 2 + kFoldedAfter;
      return {n, kFoldedChannels, cells, cells};
    }
  }
  return {n, 3, size, size};
}

}  // namespace riffle

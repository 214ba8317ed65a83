// For tests: what disks, networks and hostile hands do to the bytes of a file.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "riffle/base/random.h"

namespace riffle {

struct DamageOptions {
  std::uint64_t piece = 100;       // most bytes that are lost, inserted or doubled
  std::uint64_t front = SIZE_MAX;  // extreme values appear among this many first bytes
};

// Damages the bytes once, in a random way. Leaves at least one byte.
inline void damage(std::vector<std::byte>& bytes, Random& random, const DamageOptions& options) {
  const auto size = [&] { return static_cast<std::uint64_t>(bytes.size()); };
  const auto any_byte = [&] { return static_cast<std::byte>(random.below(256)); };
  const auto place = [&](std::uint64_t at) {
    return bytes.begin() + static_cast<std::ptrdiff_t>(at);
  };
  switch (random.below(7)) {
    case 0:  // single bits
      for (auto left = 1 + random.below(8); left > 0; --left) {
        bytes[random.below(size())] ^= static_cast<std::byte>(1u << random.below(8));
      }
      break;
    case 1:  // cut short
      bytes.resize(1 + random.below(size()));
      break;
    case 2: {  // a run of noise
      const auto at = random.below(size());
      const auto end = std::min(size(), at + 1 + random.below(64));
      std::generate(place(at), place(end), any_byte);
      break;
    }
    case 3: {  // a piece lost
      const auto at = random.below(size());
      const auto lost = random.below(std::min(size() - at, options.piece));
      bytes.erase(place(at), place(at + lost));
      break;
    }
    case 4: {  // bytes inserted
      std::vector<std::byte> extra(1 + random.below(options.piece));
      std::ranges::generate(extra, any_byte);
      bytes.insert(place(random.below(size())), extra.begin(), extra.end());
      break;
    }
    case 5: {  // a piece twice
      const auto at = random.below(size());
      const auto end = at + random.below(std::min(size() - at, options.piece));
      const std::vector<std::byte> piece(place(at), place(end));
      bytes.insert(place(at), piece.begin(), piece.end());
      break;
    }
    default: {  // extreme values, the worst for sizes and counts
      const auto at = random.below(std::min(size(), options.front));
      const auto end = std::min(size(), at + 1 + random.below(4));
      std::fill(place(at), place(end), random.chance(0.5f) ? std::byte{0xff} : std::byte{0});
    }
  }
}

}  // namespace riffle

// part=I/N: a source's files divided among N readers, of which reader I, from 0, gets every Nth
// file of the listing, in its order.
#pragma once

#include <cstddef>
#include <vector>

#include "riffle/stream/uri.h"

namespace riffle {

struct SourcePart {
  std::size_t index = 0;
  std::size_t parts = 1;

  template <typename File>
  std::vector<File> of(std::vector<File> listing) const {
    std::size_t kept = 0;
    for (std::size_t i = index; i < listing.size(); i += parts) {
      if (i != kept) listing[kept] = std::move(listing[i]);
      ++kept;
    }
    listing.erase(listing.begin() + static_cast<std::ptrdiff_t>(kept), listing.end());
    return listing;
  }
};

// Returns the option `part`; without it, all files are one part. Throws Error if it is not I/N.
SourcePart read_part(Uri& uri);

}  // namespace riffle

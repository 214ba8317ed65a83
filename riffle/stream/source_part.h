// part=I/N: a source's files divided among N readers, of which reader I, from 0, gets every Nth
// file of the listing, in its order. A file that is added or removed changes the parts, so
// positions hold only while the files stay the same.
#pragma once

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "riffle/stream/uri.h"

namespace riffle {

struct SourcePart {
  std::size_t index = 0;
  std::size_t parts = 1;

  // Throws Error, naming the source, if there are files but none for this part.
  template <typename File>
  std::vector<File> of(std::vector<File> listing, const std::string& source) const {
    if (index >= listing.size() && !listing.empty()) throw_none(listing.size(), source);
    std::size_t kept = 0;
    for (std::size_t i = index; i < listing.size(); i += parts) {
      if (i != kept) listing[kept] = std::move(listing[i]);
      ++kept;
    }
    listing.erase(listing.begin() + static_cast<std::ptrdiff_t>(kept), listing.end());
    return listing;
  }

 private:
  [[noreturn]] void throw_none(std::size_t files, const std::string& source) const;
};

// Returns the option `part`; without it, all files are one part. Throws Error if it is not I/N.
SourcePart read_part(Uri& uri);

}  // namespace riffle

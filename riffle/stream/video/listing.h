// The films that a pattern names, in a defined order.
#pragma once

#include <compare>
#include <cstdint>
#include <string>
#include <vector>

#include "riffle/stream/skip_log.h"

namespace riffle {

// Listings are sorted by (rank, path). A film's rank does not depend on the others.
struct ListedVideo {
  std::int64_t rank = 0;  // 0 by name; shuffled: drawn from the seed and the path
  std::string path;

  auto operator<=>(const ListedVideo&) const = default;
};

std::int64_t video_rank(const std::string& path, bool shuffled, std::uint64_t seed);

// Returns what the pattern matches (file_pattern.h); for a folder, the films at any depth that have
// one of the usual endings, through symbolic links too, except for names that begin with a dot.
// Adds folders that cannot be read to `skips`. Throws Error if there is no film.
std::vector<ListedVideo> list_videos(const std::string& pattern, bool shuffled, std::uint64_t seed,
                                     SkipLog& skips);

}  // namespace riffle

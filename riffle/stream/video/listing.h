// The films that a pattern names, in a defined order.
#pragma once

#include <compare>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace riffle {

// Listings are sorted by (rank, path). A film's rank does not depend on the others.
struct ListedVideo {
  std::int64_t rank = 0;  // 0 by name; shuffled: drawn from the seed and the path
  std::string path;

  auto operator<=>(const ListedVideo&) const = default;
};

std::int64_t video_rank(const std::string& path, bool shuffled, std::uint64_t seed);

// Returns the file of exactly that name, or else what the pattern matches (*, ?, [a-z], {a,b}, ~);
// for a folder, the films at any depth that have one of the usual endings, except for names that
// begin with a dot. Throws Error if there is none.
std::vector<ListedVideo> list_videos(const std::string& pattern, bool shuffled, std::uint64_t seed);

// Returns the same for the same text, on every machine; never negative.
std::int64_t stable_number(std::string_view text);

}  // namespace riffle

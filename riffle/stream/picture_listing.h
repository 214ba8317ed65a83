// The picture files below a folder, in a defined order.
#pragma once

#include <compare>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "riffle/stream/skip_log.h"

namespace riffle {

enum class ListingOrder { name, time, shuffle };

// Listings are sorted by (rank, path). A file's rank does not depend on the other files.
struct ListedPicture {
  std::int64_t rank =
      0;  // name: 0. time: of last change, in ns. shuffle: drawn from the seed and the path
  std::string path;  // relative to the folder

  auto operator<=>(const ListedPicture&) const = default;
};

// All files ending in .jpg, .jpeg or .png (any case) at any depth. Folders behind symbolic links
// are entered, each folder once; a folder that can be reached without a link is listed where it
// really is. Names that begin with a dot are left out. Sub-folders that cannot be read go to
// `skips`. Throws Error when `root` is no readable folder.
std::vector<ListedPicture> list_pictures(const std::filesystem::path& root, ListingOrder order,
                                         std::uint64_t seed, SkipLog& skips);

}  // namespace riffle

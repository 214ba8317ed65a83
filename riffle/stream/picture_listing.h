// The picture files below a folder, in a defined order.
#pragma once

#include <compare>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "riffle/stream/skip_log.h"

namespace riffle {

// Returns whether a name has one of these endings, such as ".jpg", in any case.
bool has_ending(std::string_view name, std::span<const std::string_view> endings);
// Returns whether a name ends as pictures do, in any case: .jpg, .jpeg, .png, .webp, .tif, .tiff,
// .bmp, .gif, .avif, .heic and .heif.
bool is_picture_name(std::string_view name);
// Returns whether a file in a folder is looked at: one with such an ending, or with none.
bool may_be_picture(std::string_view path);

// Returns a place in a shuffled order that depends on the path and the seed alone.
std::int64_t shuffled_rank(std::uint64_t seed, std::string_view path);

enum class ListingOrder { name, time, shuffle };

// Files that changed before the moment `since` come in the order asked for, later ones after them
// in the order in which they changed (in ns; moving or linking a file changes it too).
struct ListingRules {
  ListingOrder order = ListingOrder::name;
  std::uint64_t seed = 0;  // for shuffle
  std::int64_t since = std::numeric_limits<std::int64_t>::max();
  bool links_anywhere = false;  // otherwise symbolic links must not lead out of the folder
};

// Returns whether symbolic links on the way to `path` lead out of `root`. False if it is missing.
bool leads_out(const std::filesystem::path& root, const std::filesystem::path& path);

// Listings are sorted by (part, rank, path). A file's place does not depend on the other files.
struct ListedPicture {
  int part = 0;  // 1: changed since the moment of the rules
  // part 0: 0 for name, the time of the last writing in ns for time, drawn for shuffle; part 1: the
  // time of the change
  std::int64_t rank = 0;
  std::string path;  // relative to the folder

  auto operator<=>(const ListedPicture&) const = default;
};

// Returns the file's place in the listing.
ListedPicture listed(const std::filesystem::path& root, std::string path,
                     const ListingRules& rules);

// Returns when the file last changed in any way, moving included, or 0 if it is missing.
std::int64_t changed_at(const std::filesystem::path& path);

struct FoundFiles {
  struct Unreadable {
    std::string folder;
    std::string why;
  };
  std::vector<std::string> paths;  // relative to the root, in no order
  std::vector<Unreadable> unreadable;
};

// Returns all files with a `wanted` name at any depth below `folder`, which is relative to `root`.
// Follows symbolic links to folders (those that lead out of the root are unreadable, unless links
// may lead anywhere), but enters each folder once; a folder that can be reached without a link is
// listed where it really is. Leaves out names that begin with a dot. Calls `enter` before it
// reads a folder and skips the folder if that returns false.
FoundFiles find_files(
    const std::filesystem::path& root, const std::string& folder, bool (*wanted)(std::string_view),
    bool links_anywhere,
    const std::function<bool(const std::string&)>& enter = [](const std::string&) { return true; });

// Returns all pictures in order. Adds sub-folders that cannot be read to `skips`. Throws Error if
// `root` is not a readable folder.
std::vector<ListedPicture> list_pictures(
    const std::filesystem::path& root, const ListingRules& rules, SkipLog& skips,
    const std::function<bool(const std::string&)>& enter = [](const std::string&) { return true; });

}  // namespace riffle

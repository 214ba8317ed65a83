#include "riffle/stream/video/listing.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <set>
#include <system_error>

#include "riffle/base/error.h"
#include "riffle/base/name_hash.h"
#include "riffle/base/random.h"
#include "riffle/base/text.h"
#include "riffle/stream/file_pattern.h"
#include "riffle/stream/picture_listing.h"

namespace riffle {
namespace fs = std::filesystem;
namespace {

constexpr std::array<std::string_view, 17> kEndings = {
    ".3gp", ".avi",  ".flv", ".h264", ".m2ts", ".m4v", ".mjpeg", ".mkv", ".mov",
    ".mp4", ".mpeg", ".mpg", ".mts",  ".ogv",  ".ts",  ".webm",  ".wmv"};

bool is_video_name(std::string_view name) { return has_ending(name, kEndings); }

}  // namespace

std::int64_t video_rank(const std::string& path, bool shuffled, std::uint64_t seed) {
  if (!shuffled) return 0;
  Random random(seed, Purpose("video order"), static_cast<std::uint64_t>(stable_number(path)));
  return static_cast<std::int64_t>(random.bits64() >> 1);
}

std::vector<ListedVideo> list_videos(const std::string& pattern, bool shuffled, std::uint64_t seed,
                                     SkipLog& skips) {
  std::set<std::string> films;
  for (const auto& path : matching_paths(pattern)) {
    std::error_code unknown;
    if (!fs::is_directory(path, unknown)) {
      films.insert(path);
      continue;
    }
    const auto found = find_files(path, "", is_video_name, true);
    for (const auto& film : found.paths) films.insert((fs::path(path) / film).string());
    for (const auto& [folder, why] : found.unreadable) {
      skips.add((fs::path(path) / folder).string(), "unreadable folder", why);
    }
  }
  if (films.empty()) throw Error(cat("video: no film found by the name or pattern ", pattern));
  std::vector<ListedVideo> listing;
  for (const auto& path : films) listing.push_back({video_rank(path, shuffled, seed), path});
  std::sort(listing.begin(), listing.end());
  return listing;
}

}  // namespace riffle

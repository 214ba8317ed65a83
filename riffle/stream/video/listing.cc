#include "riffle/stream/video/listing.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <set>

#include <glob.h>

#include "riffle/base/error.h"
#include "riffle/base/name_hash.h"
#include "riffle/base/random.h"
#include "riffle/base/text.h"

namespace riffle {
namespace fs = std::filesystem;
namespace {

constexpr std::array<std::string_view, 17> kEndings = {
    ".3gp", ".avi",  ".flv", ".h264", ".m2ts", ".m4v", ".mjpeg", ".mkv", ".mov",
    ".mp4", ".mpeg", ".mpg", ".mts",  ".ogv",  ".ts",  ".webm",  ".wmv"};

bool is_video_name(const fs::path& path) {
  std::string ending = path.extension().string();
  std::transform(ending.begin(), ending.end(), ending.begin(), [](char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  });
  return std::find(kEndings.begin(), kEndings.end(), ending) != kEndings.end();
}

std::vector<std::string> matches(const std::string& pattern) {
  std::error_code unknown;
  if (fs::exists(pattern, unknown)) return {pattern};
  glob_t found{};
  const int result =
      ::glob(pattern.c_str(), GLOB_NOSORT | GLOB_BRACE | GLOB_TILDE, nullptr, &found);
  std::vector<std::string> paths;
  if (result == 0) paths.assign(found.gl_pathv, found.gl_pathv + found.gl_pathc);
  ::globfree(&found);
  return paths;
}

void add_folder(const fs::path& folder, std::set<std::string>& films) {
  std::error_code error;
  fs::recursive_directory_iterator entry(folder, fs::directory_options::skip_permission_denied,
                                         error);
  for (; !error && entry != fs::recursive_directory_iterator(); entry.increment(error)) {
    std::error_code unknown;
    const bool hidden = entry->path().filename().string().starts_with('.');
    if (entry->is_directory(unknown)) {
      if (hidden) entry.disable_recursion_pending();
    } else if (!hidden && is_video_name(entry->path())) {
      films.insert(entry->path().string());
    }
  }
}

}  // namespace

std::int64_t stable_number(std::string_view text) {
  return static_cast<std::int64_t>(name_hash(text) >> 1);
}

std::int64_t video_rank(const std::string& path, bool shuffled, std::uint64_t seed) {
  if (!shuffled) return 0;
  Random random(seed, Purpose("video order"), static_cast<std::uint64_t>(stable_number(path)));
  return static_cast<std::int64_t>(random.bits64() >> 1);
}

std::vector<ListedVideo> list_videos(const std::string& pattern, bool shuffled,
                                     std::uint64_t seed) {
  std::set<std::string> films;
  for (const auto& path : matches(pattern)) {
    std::error_code unknown;
    if (fs::is_directory(path, unknown)) {
      add_folder(path, films);
    } else {
      films.insert(path);
    }
  }
  if (films.empty()) throw Error(cat("video: no film found by the name or pattern ", pattern));
  std::vector<ListedVideo> listing;
  for (const auto& path : films) listing.push_back({video_rank(path, shuffled, seed), path});
  std::sort(listing.begin(), listing.end());
  return listing;
}

}  // namespace riffle

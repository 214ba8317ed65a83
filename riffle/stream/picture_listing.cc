#include "riffle/stream/picture_listing.h"

#include <algorithm>
#include <array>
#include <set>
#include <string_view>
#include <utility>

#include <sys/stat.h>

#include "riffle/base/error.h"
#include "riffle/base/random.h"
#include "riffle/base/text.h"

namespace riffle {
namespace fs = std::filesystem;
namespace {

bool is_picture_name(std::string_view name) {
  const auto dot = name.rfind('.');
  if (dot == std::string_view::npos) return false;
  std::string ending(name.substr(dot));
  std::transform(ending.begin(), ending.end(), ending.begin(), [](char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  });
  return ending == ".jpg" || ending == ".jpeg" || ending == ".png";
}

// Finds the pictures below a folder. Links to folders are kept for the end, so that what is really
// there comes first.
class Walk {
 public:
  Walk(const fs::path& root, SkipLog& skips) : root_(root), skips_(skips) {
    std::error_code error;
    fs::directory_iterator readable(root, error);
    if (error) throw Error(cat("cannot read the folder ", root.string(), ": ", error.message()));
    enter("");
    finish_folders();
    while (!links_.empty()) {
      enter(links_.extract(links_.begin()).value());
      finish_folders();
    }
  }

  std::vector<std::string> take() { return std::move(paths_); }

 private:
  void enter(const std::string& folder) {
    struct stat found {};
    if (::stat((root_ / folder).c_str(), &found) != 0)
      return;  // gone, or a link that leads nowhere
    if (seen_.emplace(found.st_dev, found.st_ino).second) folders_.push_back(folder);
  }

  void finish_folders() {
    while (!folders_.empty()) {
      const std::string folder = std::move(folders_.back());
      folders_.pop_back();
      read(folder);
    }
  }

  void read(const std::string& folder) {
    std::error_code error;
    fs::directory_iterator entry(root_ / folder, error);
    for (; !error && entry != fs::directory_iterator(); entry.increment(error)) {
      const std::string name = entry->path().filename().string();
      if (name.starts_with('.')) continue;
      const std::string path = folder.empty() ? name : cat(folder, '/', name);
      std::error_code unknown;
      if (entry->is_directory(unknown)) {
        if (entry->is_symlink(unknown)) {
          links_.insert(path);
        } else {
          enter(path);
        }
      } else if (is_picture_name(name) &&
                 (entry->is_regular_file(unknown) || entry->is_symlink(unknown))) {
        paths_.push_back(path);
      }
    }
    if (error) skips_.add((root_ / folder).string(), "unreadable folder", error.message());
  }

  fs::path root_;
  SkipLog& skips_;
  std::vector<std::string> paths_;
  std::vector<std::string> folders_;  // still to be read
  std::set<std::string> links_;       // to folders, still to be entered
  std::set<std::pair<dev_t, ino_t>> seen_;
};

std::int64_t changed_at(const fs::path& path) {
  struct stat found {};
  if (::stat(path.c_str(), &found) != 0) return 0;
  return std::int64_t{found.st_mtim.tv_sec} * 1'000'000'000 + found.st_mtim.tv_nsec;
}

std::uint64_t hash_of(std::string_view text) {  // FNV-1a
  std::uint64_t hash = 14695981039346656037u;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211u;
  return hash;
}

}  // namespace

std::vector<ListedPicture> list_pictures(const fs::path& root, ListingOrder order,
                                         std::uint64_t seed, SkipLog& skips) {
  std::vector<ListedPicture> listing;
  for (auto& path : Walk(root, skips).take()) {
    std::int64_t rank = 0;
    if (order == ListingOrder::time) rank = changed_at(root / path);
    if (order == ListingOrder::shuffle) {
      Random random(seed, Purpose("folder order"), hash_of(path));
      rank = static_cast<std::int64_t>(random.bits64() >> 1);
    }
    listing.push_back({rank, std::move(path)});
  }
  std::sort(listing.begin(), listing.end());
  return listing;
}

}  // namespace riffle

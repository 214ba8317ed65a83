#include "riffle/stream/picture_listing.h"

#include <algorithm>
#include <array>
#include <set>
#include <string_view>
#include <utility>

#include <sys/stat.h>

#include "riffle/base/error.h"
#include "riffle/base/name_hash.h"
#include "riffle/base/random.h"
#include "riffle/base/text.h"

namespace riffle {
namespace fs = std::filesystem;
namespace {

using Enter = std::function<bool(const std::string&)>;

constexpr const char* kLeadsOut = "a link leads out of the folder; links=anywhere follows it";

// Finds the files below a folder. Follows links to folders last, so that a folder is listed where
// it really is.
class Walk {
 public:
  Walk(const fs::path& root, const std::string& folder, bool (*wanted)(std::string_view),
       bool links_anywhere, const Enter& may_enter)
      : root_(root), wanted_(wanted), links_anywhere_(links_anywhere), may_enter_(may_enter) {
    enter(folder);
    finish_folders();
    while (!links_.empty()) {
      enter(links_.extract(links_.begin()).value());
      finish_folders();
    }
  }

  FoundFiles take() { return std::move(found_); }

 private:
  void enter(const std::string& folder) {
    struct stat found {};
    if (::stat((root_ / folder).c_str(), &found) != 0)
      return;  // gone, or a link that leads nowhere
    if (!links_anywhere_ && leads_out(root_, root_ / folder)) {
      found_.unreadable.push_back({folder, kLeadsOut});
      return;
    }
    if (!seen_.emplace(found.st_dev, found.st_ino).second || !may_enter_(folder)) return;
    folders_.push_back(folder);
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
      } else if (wanted_(name) && (entry->is_regular_file(unknown) || entry->is_symlink(unknown))) {
        found_.paths.push_back(path);
      }
    }
    if (error) found_.unreadable.push_back({folder, error.message()});
  }

  const fs::path& root_;
  bool (*const wanted_)(std::string_view);
  const bool links_anywhere_;
  const Enter& may_enter_;
  FoundFiles found_;
  std::vector<std::string> folders_;  // still to be read
  std::set<std::string> links_;       // to folders, still to be entered
  std::set<std::pair<dev_t, ino_t>> seen_;
};

std::int64_t nanoseconds(const struct timespec& time) {
  return std::int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec;
}

std::int64_t written_at(const fs::path& path) {
  struct stat found {};
  return ::stat(path.c_str(), &found) == 0 ? nanoseconds(found.st_mtim) : 0;
}

}  // namespace

bool has_ending(std::string_view name, std::span<const std::string_view> endings) {
  const auto dot = name.rfind('.');
  if (dot == std::string_view::npos) return false;
  std::string ending(name.substr(dot));
  std::transform(ending.begin(), ending.end(), ending.begin(), [](char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  });
  return std::ranges::find(endings, ending) != endings.end();
}

bool is_picture_name(std::string_view name) {
  static constexpr std::array<std::string_view, 11> kEndings = {
      ".jpg", ".jpeg", ".png", ".webp", ".tif", ".tiff", ".bmp", ".gif", ".avif", ".heic", ".heif"};
  return has_ending(name, kEndings);
}

bool may_be_picture(std::string_view path) {
  const auto name = path.substr(path.rfind('/') + 1);
  return is_picture_name(name) || name.find('.') == std::string_view::npos;
}

std::int64_t shuffled_rank(std::uint64_t seed, std::string_view path) {
  Random random(seed, Purpose("folder order"), name_hash(path));
  return static_cast<std::int64_t>(random.bits64() >> 1);
}

std::int64_t changed_at(const fs::path& path) {
  struct stat file {
  }, link{};
  if (::stat(path.c_str(), &file) != 0 || ::lstat(path.c_str(), &link) != 0) return 0;
  return std::max(nanoseconds(file.st_ctim), nanoseconds(link.st_ctim));
}

ListedPicture listed(const fs::path& root, std::string path, const ListingRules& rules) {
  ListedPicture picture;
  if (rules.since != std::numeric_limits<std::int64_t>::max()) {
    picture.rank = changed_at(root / path);
    picture.part = picture.rank >= rules.since ? 1 : 0;
  }
  if (picture.part == 0) {
    picture.rank = 0;
    if (rules.order == ListingOrder::time) picture.rank = written_at(root / path);
    if (rules.order == ListingOrder::shuffle) picture.rank = shuffled_rank(rules.seed, path);
  }
  picture.path = std::move(path);
  return picture;
}

bool leads_out(const fs::path& root, const fs::path& path) {
  std::error_code missing;
  const fs::path inside = fs::canonical(root, missing), target = fs::canonical(path, missing);
  if (missing) return false;
  return std::mismatch(inside.begin(), inside.end(), target.begin(), target.end()).first !=
         inside.end();
}

FoundFiles find_files(const fs::path& root, const std::string& folder,
                      bool (*wanted)(std::string_view), bool links_anywhere, const Enter& enter) {
  return Walk(root, folder, wanted, links_anywhere, enter).take();
}

std::vector<ListedPicture> list_pictures(const fs::path& root, const ListingRules& rules,
                                         SkipLog& skips, const Enter& enter) {
  std::error_code error;
  fs::directory_iterator readable(root, error);
  if (error) throw Error(cat("cannot read the folder ", root.string(), ": ", error.message()));
  auto found = find_files(root, "", may_be_picture, rules.links_anywhere, enter);
  for (const auto& [folder, why] : found.unreadable) {
    skips.add((root / folder).string(), "unreadable folder", why);
  }
  std::vector<ListedPicture> listing;
  for (auto& path : found.paths) listing.push_back(listed(root, std::move(path), rules));
  std::sort(listing.begin(), listing.end());
  return listing;
}

}  // namespace riffle

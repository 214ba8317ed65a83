#include "riffle/stream/folder/picture_feed.h"

#include <algorithm>
#include <utility>

#include "riffle/base/error.h"
#include "riffle/stream/folder/unfinished_file.h"

namespace riffle {
namespace fs = std::filesystem;
namespace {

using namespace std::chrono_literals;

// How long a picture waits for others that changed before it but are noticed later: clocks of files
// are coarse, and closing takes its time. This makes the order that of a later listing.
constexpr auto kSettle = 50ms;
// How long until a file is checked again that was open for writing when it should not have been:
// the kernel tells of a close before it is over.
constexpr auto kCheckAgain = 250ms;

}  // namespace

PictureFeed::PictureFeed(fs::path root, const ListingRules& rules, SkipLog& skips)
    : root_(std::move(root)), rules_(rules), watch_(root_) {
  // A folder is watched before it is read, so that nothing appears unnoticed in between.
  listing_ = list_pictures(root_, rules_, skips, [&](const std::string& folder) {
    watch_.add(folder);
    return true;
  });
  for (const auto& picture : listing_) {
    if (picture.part == 1) arrived_.emplace(picture.path, picture.rank);
  }
}

void PictureFeed::continue_after(const std::optional<ListedPicture>& last,
                                 const std::vector<std::string>& owed) {
  const auto after =
      last ? std::upper_bound(listing_.begin(), listing_.end(), *last) : listing_.begin();
  next_ = static_cast<std::size_t>(after - listing_.begin());
  furthest_ = last;
  for (const auto& path : owed) {
    const auto picture = listed(root_, path, rules_);
    const bool is_there = std::binary_search(listing_.begin(), listing_.end(), picture);
    if (!is_there || !last || *last < picture) continue;  // gone, or comes by itself
    unfinished_.insert(path);
    arrive(path);
  }
}

std::optional<PictureFeed::Item> PictureFeed::next() {
  while (next_ < listing_.size()) {
    const auto& picture = listing_[next_++];
    if (!is_unfinished(root_ / picture.path)) return give(picture);
    unfinished_.insert(picture.path);
  }
  return next_arrival();
}

PictureFeed::Item PictureFeed::give(ListedPicture picture) {
  if (!furthest_ || *furthest_ < picture) furthest_ = picture;
  std::vector<std::string> owed(unfinished_.begin(), unfinished_.end());
  for (const auto& [waits, noticed] : waiting_) {
    if (*furthest_ < waits || owed.size() >= kMaxOwed) break;
    owed.push_back(waits.path);
  }
  if (owed.size() > kMaxOwed) owed.resize(kMaxOwed);
  return {std::move(picture), "", std::move(owed)};
}

void PictureFeed::stop() { watch_.stop(); }

std::optional<PictureFeed::Item> PictureFeed::next_arrival() {
  while (true) {
    const auto changes = watch_.wait(milliseconds_to_wait());
    if (!changes) return std::nullopt;
    for (const auto& change : *changes) take_in(change);
    if (!still_open_.empty() && Clock::now() >= check_again_) {
      for (const auto& path : std::exchange(still_open_, {})) arrive(path);
    }
    if (!unreadable_.empty()) {
      auto item = std::move(unreadable_.front());
      unreadable_.pop_front();
      return item;
    }
    if (waiting_.empty() || Clock::now() < waiting_.begin()->second + kSettle) continue;
    const auto first = waiting_.extract(waiting_.begin()).key();
    if (changed_at(root_ / first.path) == first.rank) return give(first);
    arrived_.erase(first.path);  // changed again, or gone
    arrive(first.path);
  }
}

int PictureFeed::milliseconds_to_wait() const {
  if (!unreadable_.empty()) return 0;
  auto until = Clock::time_point::max();
  if (!waiting_.empty()) until = waiting_.begin()->second + kSettle;
  if (!still_open_.empty()) until = std::min(until, check_again_);
  if (until == Clock::time_point::max()) return -1;
  const auto left = until - Clock::now();
  return std::max(0, static_cast<int>(std::chrono::ceil<std::chrono::milliseconds>(left).count()));
}

void PictureFeed::take_in(const FolderChange& change) {
  switch (change.kind) {
    case FolderChange::Kind::begun:
      if (may_be_picture(change.path)) begin(change.path);
      break;
    case FolderChange::Kind::file:
      if (may_be_picture(change.path)) arrive(change.path);
      break;
    case FolderChange::Kind::folder:
      read_folder(change.path, false);
      break;
    case FolderChange::Kind::gone:
      forget(change.path);
      break;
    case FolderChange::Kind::folder_gone:
      forget_below(change.path);
      break;
    case FolderChange::Kind::overlooked:
      read_folder("", true);
      break;
  }
}

void PictureFeed::read_folder(const std::string& folder, bool again) {
  const auto report = [&](std::string path, std::string why) {
    unreadable_.push_back({{.path = std::move(path)}, std::move(why), {}});
  };
  const auto enter = [&](const std::string& entered) {
    try {
      return watch_.add(entered) || again;
    } catch (const Error& no_more) {
      report(entered, no_more.what());
      return true;
    }
  };
  auto found = find_files(root_, folder, may_be_picture, rules_.links_anywhere, enter);
  if (again) {
    const auto is_gone = [&](const std::string& path) { return changed_at(root_ / path) == 0; };
    std::erase_if(arrived_, [&](const auto& known) { return is_gone(known.first); });
    std::erase_if(unfinished_, is_gone);
  }
  for (const auto& path : found.paths) arrive(path);
  for (auto& [path, why] : found.unreadable) report(std::move(path), std::move(why));
}

// Returns whether it was given, or waits to be, as it is now.
bool PictureFeed::is_known(const std::string& path, std::int64_t changed) const {
  const auto known = arrived_.find(path);
  if (known != arrived_.end() && known->second == changed) return true;
  const auto picture = listed(root_, path, rules_);
  return picture.part == 0 && std::binary_search(listing_.begin(), listing_.end(), picture);
}

void PictureFeed::begin(const std::string& path) {
  const auto changed = changed_at(root_ / path);
  if (changed != 0 && !is_known(path, changed)) unfinished_.insert(path);
}

void PictureFeed::arrive(const std::string& path) {
  const auto changed = changed_at(root_ / path);
  if (changed == 0) return;
  if (!unfinished_.contains(path) && is_known(path, changed)) return;
  forget(path);
  if (is_unfinished(root_ / path)) {
    unfinished_.insert(path);
    if (still_open_.empty()) check_again_ = Clock::now() + kCheckAgain;
    still_open_.insert(path);
    return;
  }
  arrived_.emplace(path, changed);
  waiting_.emplace(ListedPicture{1, changed, path}, Clock::now());
}

void PictureFeed::forget(const std::string& path) {
  unfinished_.erase(path);
  still_open_.erase(path);
  const auto known = arrived_.find(path);
  if (known == arrived_.end()) return;
  waiting_.erase({1, known->second, path});
  arrived_.erase(known);
}

void PictureFeed::forget_below(const std::string& folder) {
  const std::string below = folder + '/', after = folder + static_cast<char>('/' + 1);
  for (auto* paths : {&unfinished_, &still_open_}) {
    paths->erase(paths->lower_bound(below), paths->lower_bound(after));
  }
  const auto first = arrived_.lower_bound(below), end = arrived_.lower_bound(after);
  for (auto known = first; known != end; ++known) waiting_.erase({1, known->second, known->first});
  arrived_.erase(first, end);
}

}  // namespace riffle

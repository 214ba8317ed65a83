// The pictures of a watched folder one after the other: first those that are there, then those that
// appear, in order of their last change.
//
// A picture appears when it is closed after writing, moved in or linked; one that is written again
// appears again. One that somebody still has open for writing waits until it is closed, however it
// was found. next() is called by one thread at a time, stop() by any; the rest before both.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <filesystem>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "riffle/stream/folder/watch.h"
#include "riffle/stream/picture_listing.h"
#include "riffle/stream/skip_log.h"

namespace riffle {

class PictureFeed {
 public:
  struct Item {
    ListedPicture picture;
    std::string unreadable;  // not empty: the path names a folder that cannot be read, and why
    // Pictures not given yet that may turn out to lie before one that was: they were begun, but
    // are closed late, or were noticed late. At most kMaxOwed.
    std::vector<std::string> owed;
  };
  static constexpr std::size_t kMaxOwed = 100;

  // Throws Error if `root` is not a readable folder or cannot be watched. Adds folders below it
  // that cannot be read to `skips`, which is not used later.
  PictureFeed(std::filesystem::path root, const ListingRules& rules, SkipLog& skips);

  // Continues after this picture, whether it is there or not; without one, from the beginning.
  // Those owed at that time come too, wherever they lie.
  void continue_after(const std::optional<ListedPicture>& last,
                      const std::vector<std::string>& owed);

  // Waits for the next picture and returns it, or nothing if stopped.
  std::optional<Item> next();
  void stop();

 private:
  using Clock = std::chrono::steady_clock;

  Item give(ListedPicture picture);
  std::optional<Item> next_arrival();
  void take_in(const FolderChange& change);
  void read_folder(const std::string& folder, bool again);
  bool is_known(const std::string& path, std::int64_t changed) const;
  void begin(const std::string& path);
  void arrive(const std::string& path);
  void forget(const std::string& path);
  void forget_below(const std::string& folder);
  int milliseconds_to_wait() const;

  const std::filesystem::path root_;
  const ListingRules rules_;
  FolderWatch watch_;
  std::vector<ListedPicture> listing_;
  std::size_t next_ = 0;
  // When those that appeared and are still there changed, to know them again.
  std::map<std::string, std::int64_t> arrived_;
  std::map<ListedPicture, Clock::time_point> waiting_;  // with the time at which they were noticed
  std::set<std::string> unfinished_;                    // begun, and not closed yet
  std::set<std::string> still_open_;  // of those, which should have been: to be checked again
  Clock::time_point check_again_;
  std::optional<ListedPicture> furthest_;  // the last by order of all that were given
  std::deque<Item> unreadable_;
};

}  // namespace riffle

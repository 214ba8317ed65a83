#include "riffle/stream/folder/watched_folder.h"

#include <chrono>
#include <cstddef>
#include <ctime>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "riffle/base/text.h"
#include "riffle/stream/folder/picture_feed.h"
#include "riffle/stream/pull_ahead.h"
#include "riffle/stream/skip_log.h"

namespace riffle {
namespace {

std::int64_t read_clock(clockid_t clock) {
  struct timespec time {};
  ::clock_gettime(clock, &time);
  return std::int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec;
}

// Returns a moment later than the times of all files that are there, and no later than those of
// files that appear after the call. These times come from a clock that moves in steps of some
// milliseconds: the step under way is waited for.
std::int64_t moment_between_files() {
  constexpr int kMaxWaits = 100;  // in case the clock is set back meanwhile
  const auto moment = read_clock(CLOCK_REALTIME) + 1;
  for (int i = 0; i < kMaxWaits && read_clock(CLOCK_REALTIME_COARSE) < moment; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return moment;
}

struct LoadedPicture {
  PictureFeed::Item item;
  Decoded decoded;
};

class WatchedFolderStream : public Stream {
 public:
  explicit WatchedFolderStream(FolderOptions options) : options_(std::move(options)) {
    begin(moment_between_files(), std::nullopt, {});
  }

  ~WatchedFolderStream() override {
    feed_->stop();  // its wait, so that the threads end
  }

  std::optional<Sample> next() override {
    if (!ahead_) {
      ahead_.emplace(
          options_.decoding.threads, kAheadBytes, [this] { return feed_->next(); },
          [this](PictureFeed::Item&& item) { return load(std::move(item)); },
          [](const LoadedPicture& loaded) { return weight(loaded.decoded); });
    }
    while (!is_stopped()) {
      auto loaded = ahead_->take();
      if (!loaded) break;
      auto& [item, decoded] = *loaded;
      const auto path = item.picture.path;
      if (item.unreadable.empty()) {
        owed_ = std::move(item.owed);
        // One that is noticed late does not bring back those that were read before it.
        if (!last_ || *last_ < item.picture) last_ = std::move(item.picture);
      }
      if (decoded.picture) {
        return folder_sample(options_, path, std::move(*decoded.picture), given_++);
      }
      skips_.add((options_.root / path).string(), decoded.failure.reason, decoded.failure.detail);
    }
    return std::nullopt;
  }

  bool endless() const override { return true; }

  // "order given watch since [part rank path owed...]": the last file in order of those read, if
  // any; paths in percent code.
  std::string position() const override {
    auto text = cat(options_.order_name, ' ', given_, " watch ", since_);
    if (!last_) return text;
    text += cat(' ', last_->part, ' ', last_->rank, ' ', encode_percent(last_->path));
    for (const auto& path : owed_) text += cat(' ', encode_percent(path));
    return text;
  }

  void seek(const std::string& position) override {
    constexpr std::size_t kSince = 3, kPart = 4, kRank = 5, kPath = 6, kOwed = 7;
    const auto words = split(position, ' ');
    if ((words.size() != kPart && words.size() < kOwed) || words[0] != options_.order_name ||
        words[2] != "watch") {
      throw not_a_position(options_, position);
    }
    const auto number = [&](std::size_t i) {
      return parse_integer(words[i], "a number in a folder position");
    };
    const auto given = parse_given(words[1]);
    std::optional<ListedPicture> last;
    std::vector<std::string> owed;
    if (words.size() >= kOwed) {
      last = {number(kPart) != 0 ? 1 : 0, number(kRank), decode_percent(words[kPath])};
      for (auto i = kOwed; i < words.size(); ++i) owed.push_back(decode_percent(words[i]));
    }
    begin(number(kSince), std::move(last), std::move(owed));
    given_ = given;
  }

  void stop() override {
    const std::lock_guard lock(mutex_);
    stopped_ = true;
    feed_->stop();
  }

  std::map<std::string, std::int64_t> skipped() const override { return skips_.counts(); }

 private:
  // Reading continues after `last`, with what is owed.
  void begin(std::int64_t since, std::optional<ListedPicture> last, std::vector<std::string> owed) {
    auto rules = options_.rules;
    rules.since = since;
    auto feed = std::make_unique<PictureFeed>(options_.root, rules, skips_);
    feed->continue_after(last, owed);
    if (feed_) feed_->stop();  // its wait, so that the threads end
    ahead_.reset();
    {
      const std::lock_guard lock(mutex_);
      feed_ = std::move(feed);
      if (stopped_) feed_->stop();
    }
    since_ = since;
    last_ = std::move(last);
    owed_ = std::move(owed);
  }

  LoadedPicture load(PictureFeed::Item item) const {
    LoadedPicture loaded;
    if (item.unreadable.empty()) {
      loaded.decoded = load_picture(options_, item.picture.path);
    } else {
      loaded.decoded.failure = {"unreadable folder", item.unreadable};
    }
    loaded.item = std::move(item);
    return loaded;
  }

  bool is_stopped() const {
    const std::lock_guard lock(mutex_);
    return stopped_;
  }

  const FolderOptions options_;
  SkipLog skips_;
  std::int64_t since_ = 0;             // when the stream was first opened
  std::optional<ListedPicture> last_;  // reading continues after it
  std::vector<std::string> owed_;      // see PictureFeed
  std::uint64_t given_ = 0;
  mutable std::mutex mutex_;  // of the two below, which stop() uses
  bool stopped_ = false;
  std::unique_ptr<PictureFeed> feed_;
  std::optional<PullAhead<PictureFeed::Item, LoadedPicture>>
      ahead_;  // its threads use the members above
};

}  // namespace

std::unique_ptr<Stream> open_watched_folder(FolderOptions options) {
  return std::make_unique<WatchedFolderStream>(std::move(options));
}

}  // namespace riffle

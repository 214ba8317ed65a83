#include "riffle/stream/folder/folder.h"

#include <algorithm>
#include <chrono>
#include <ctime>
#include <filesystem>
#include <limits>
#include <mutex>
#include <thread>
#include <utility>

#include "riffle/base/error.h"
#include "riffle/base/file.h"
#include "riffle/base/text.h"
#include "riffle/stream/decoding.h"
#include "riffle/stream/folder/picture_feed.h"
#include "riffle/stream/pull_ahead.h"
#include "riffle/stream/skip_log.h"

namespace riffle {
namespace fs = std::filesystem;
namespace {

constexpr const char* kUnreadable = "unreadable";

Decoded load(const fs::path& path, const DecodeOptions& options) {
  Decoded loaded;
  std::error_code error;
  const auto size = fs::file_size(path, error);
  if (error) {
    loaded.failure = {kUnreadable, error.message()};
    return loaded;
  }
  if (size > kMaxPictureBytes) {
    loaded.failure = {"too large", bytes_text(size)};
    return loaded;
  }
  try {
    return decode(read_bytes(path), options);
  } catch (const Error& unreadable) {
    loaded.failure = {kUnreadable, unreadable.what()};
  }
  return loaded;
}

// A disk that was taken away leaves its mount point behind, empty.
bool is_gone_or_empty(const fs::path& folder) {
  std::error_code error;
  const bool empty = fs::is_empty(folder, error);
  return empty || error;
}

std::int64_t read_clock(clockid_t clock) {
  struct timespec time {};
  ::clock_gettime(clock, &time);
  return std::int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec;
}

// A moment later than the times of all files that are there, and no later than those of files that
// appear after the call. These times come from a clock that moves in steps of some milliseconds:
// the step under way is waited for.
std::int64_t moment_between_files() {
  constexpr int kMostWaits = 100;  // were the clock set back meanwhile
  const auto moment = read_clock(CLOCK_REALTIME) + 1;
  for (int i = 0; i < kMostWaits && read_clock(CLOCK_REALTIME_COARSE) < moment; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return moment;
}

struct FolderOptions {
  fs::path root;
  std::string order_name;
  ListingRules rules;
  bool watch = false;
  bool labels = true;
  Decoding decoding;
};

FolderOptions folder_options(Uri& uri) {
  FolderOptions options;
  if (uri.path().empty()) throw Error("folder: needs a path, such as folder:/data/photos");
  options.root = uri.path();
  options.order_name = uri.get_choice("order", {"name", "time", "shuffle"});
  if (options.order_name == "time") options.rules.order = ListingOrder::time;
  if (options.order_name == "shuffle") options.rules.order = ListingOrder::shuffle;
  options.watch = uri.get_bool("watch", false);
  if (options.watch) options.rules.since = moment_between_files();
  options.labels = uri.get_choice("label", {"dir", "none"}) == "dir";
  options.rules.seed = static_cast<std::uint64_t>(
      uri.get_integer("seed", 0, 0, std::numeric_limits<std::int64_t>::max()));
  options.decoding = read_decoding(uri);
  uri.refuse_unknown();
  return options;
}

struct Loaded {
  PictureFeed::Item item;
  Decoded decoded;
};

class FolderStream : public Stream {
 public:
  explicit FolderStream(FolderOptions options) : options_(std::move(options)) {
    begin(options_.rules.since, std::nullopt, {});
    if (feed_->size() == 0 && !options_.watch) {
      throw Error(cat("no pictures (.jpg, .jpeg, .png) in the folder ", options_.root.string()));
    }
  }

  ~FolderStream() override {
    feed_->stop();  // its wait, so that the threads end
  }

  std::optional<Sample> next() override {
    if (!ahead_) {
      ahead_.emplace(
          options_.decoding.threads, kAheadBytes, [this] { return feed_->next(); },
          [this](PictureFeed::Item&& item) { return load_item(std::move(item)); },
          [](const Loaded& loaded) { return weight(loaded.decoded); });
    }
    while (!is_stopped()) {
      auto loaded = ahead_->take();
      if (!loaded) break;
      auto& item = loaded->item;
      const auto path = (options_.root / item.picture.path).string();
      auto& [picture, failure] = loaded->decoded;
      const auto label = folder_below_root(item.picture.path);
      // All that is left would be skipped, and a run would take it for the end.
      if (failure.reason == kUnreadable && !options_.watch && is_gone_or_empty(options_.root)) {
        throw Error(cat("the folder ", options_.root.string(), " is gone or empty (", path, ": ",
                        failure.detail, ")"),
                    ErrorKind::failure);
      }
      if (item.unreadable.empty()) {
        owed_ = std::move(item.owed);
        // One that is noticed late does not bring back those that were read before it.
        if (!last_ || *last_ < item.picture) last_ = std::move(item.picture);
      }
      if (!picture) {
        skips_.add(path, failure.reason, failure.detail);
        continue;
      }
      Sample sample;
      sample.picture = std::move(*picture);
      sample.index = given_++;
      sample.key = path;
      if (options_.labels) sample.label = label;
      return sample;
    }
    if (given_ == 0 && !options_.watch) {
      throw Error(cat("none of the ", feed_->size(), " pictures in the folder ",
                      options_.root.string(), " can be decoded (", skips_.summary(), ")"));
    }
    return std::nullopt;
  }

  // "order given [rank path]": the last file behind the reader, if any, with its path in percent
  // code. Where the folder is watched: "order given watch since [part rank path owed...]".
  std::string position() const override {
    auto text = cat(options_.order_name, ' ', given_);
    if (options_.watch) text += cat(" watch ", since_);
    if (!last_) return text;
    if (options_.watch) text += cat(' ', last_->part);
    text += cat(' ', last_->rank, ' ', encode_percent(last_->path));
    for (const auto& path : owed_) text += cat(' ', encode_percent(path));
    return text;
  }

  void seek(const std::string& position) override {
    const auto parts = split(position, ' ');
    const std::size_t shortest = options_.watch ? 4 : 2;
    const std::size_t with_last = options_.watch ? 7 : 4;
    const bool right_size = parts.size() == shortest || parts.size() == with_last ||
                            (options_.watch && parts.size() > with_last);
    if (!right_size || parts[0] != options_.order_name || (options_.watch && parts[2] != "watch")) {
      throw Error(cat("'", position, "' is no position in folder:", options_.root.string(),
                      "?order=", options_.order_name, options_.watch ? "&watch=1" : ""));
    }
    const auto number = [&](std::size_t i) {
      return parse_integer(parts[i], "a number in a folder position");
    };
    const auto given = number(1);
    if (given < 0)
      throw Error(cat("the count in the folder position '", position, "' is negative"));
    const auto since = options_.watch ? number(3) : since_;
    std::optional<ListedPicture> last;
    std::vector<std::string> owed;
    if (parts.size() >= with_last) {
      const int part = options_.watch && number(4) != 0 ? 1 : 0;
      last = {part, number(with_last - 2), decode_percent(parts[with_last - 1])};
      for (auto i = with_last; i < parts.size(); ++i) owed.push_back(decode_percent(parts[i]));
    }
    begin(since, std::move(last), std::move(owed));
    given_ = static_cast<std::uint64_t>(given);
  }

  void stop() override {
    if (!options_.watch) return;
    const std::lock_guard lock(mutex_);
    stopped_ = true;
    feed_->stop();
  }

  std::map<std::string, std::int64_t> skipped() const override { return skips_.counts(); }

 private:
  // Reading goes on behind `last`, with what is owed. What is there is listed once, unless it is
  // watched.
  void begin(std::int64_t since, std::optional<ListedPicture> last, std::vector<std::string> owed) {
    std::unique_ptr<PictureFeed> feed;
    if (!feed_ || options_.watch) {
      auto rules = options_.rules;
      rules.since = since;
      feed = std::make_unique<PictureFeed>(options_.root, rules, options_.watch, skips_);
      if (feed_) feed_->stop();  // its wait, so that the threads end
    }
    ahead_.reset();
    if (feed) {
      const std::lock_guard lock(mutex_);
      feed_ = std::move(feed);
      if (stopped_) feed_->stop();
    }
    since_ = since;
    last_ = std::move(last);
    owed_ = std::move(owed);
    feed_->go_behind(last_, owed_);
  }

  Loaded load_item(PictureFeed::Item item) const {
    Loaded loaded;
    if (item.unreadable.empty()) {
      loaded.decoded = load(options_.root / item.picture.path, options_.decoding.options);
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

  static std::string folder_below_root(const std::string& relative) {
    const auto slash = relative.find('/');
    return slash == std::string::npos ? std::string() : relative.substr(0, slash);
  }

  const FolderOptions options_;
  SkipLog skips_;
  std::int64_t since_ = 0;             // when the stream was first opened
  std::optional<ListedPicture> last_;  // behind which reading goes on
  std::vector<std::string> owed_;      // see PictureFeed
  std::uint64_t given_ = 0;
  mutable std::mutex mutex_;  // of the two below, which stop() uses
  bool stopped_ = false;
  std::unique_ptr<PictureFeed> feed_;
  std::optional<PullAhead<PictureFeed::Item, Loaded>> ahead_;  // its threads use the members above
};

}  // namespace

std::unique_ptr<Stream> open_folder(Uri& uri) {
  return std::make_unique<FolderStream>(folder_options(uri));
}

}  // namespace riffle

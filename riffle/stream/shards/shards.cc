#include "riffle/stream/shards/shards.h"

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <limits>
#include <utility>

#include "riffle/base/error.h"
#include "riffle/base/text.h"
#include "riffle/stream/decoding.h"
#include "riffle/stream/file_pattern.h"
#include "riffle/stream/picture_listing.h"
#include "riffle/stream/pull_ahead.h"
#include "riffle/stream/shards/reader.h"
#include "riffle/stream/skip_log.h"
#include "riffle/stream/source_part.h"

namespace riffle {
namespace {

struct ShardsOptions {
  std::string pattern;
  std::string order;
  std::uint64_t seed = 0;
  SourcePart part;
  ShardLabels labels;
  Decoding decoding;
};

ShardsOptions shards_options(Uri& uri) {
  ShardsOptions options;
  if (uri.path().empty()) throw Error("shards: needs files, such as shards:/data/train-*.tar");
  options.pattern = uri.path();
  options.order = uri.get_choice("order", {"name", "shuffle"});
  const auto label = uri.get_choice("label", {"auto", "cls", "json", "dir", "none"});
  options.labels.cls = label == "auto" || label == "cls";
  options.labels.json = label == "auto" || label == "json";
  options.labels.folder = label == "auto" || label == "dir";
  options.labels.json_key = uri.get("json_key", "label");
  options.seed = static_cast<std::uint64_t>(
      uri.get_integer("seed", 0, 0, std::numeric_limits<std::int64_t>::max()));
  options.part = read_part(uri);
  options.decoding = read_decoding(uri);
  uri.refuse_unknown();
  return options;
}

// Sorted by (rank, path), as pictures in a folder.
std::vector<ListedPicture> list_shards(const ShardsOptions& options) {
  std::vector<ListedPicture> listing;
  for (const auto& path : matching_paths(options.pattern)) {
    const auto rank = options.order == "shuffle" ? shuffled_rank(options.seed, path) : 0;
    listing.push_back({.rank = rank, .path = path});
  }
  if (listing.empty()) throw Error(cat("no file matches shards:", options.pattern));
  std::sort(listing.begin(), listing.end());
  return options.part.of(std::move(listing), "shards:" + options.pattern);
}

struct OpenedItem {
  ShardItem item;
  Decoded decoded;
};

class ShardsStream : public Stream {
 public:
  explicit ShardsStream(ShardsOptions options)
      : options_(std::move(options)), listing_(list_shards(options_)) {
    for (const auto& shard : listing_) paths_.push_back(shard.path);
  }

  std::optional<Sample> next() override {
    if (!ahead_) start();
    while (auto opened = stopped_ ? std::nullopt : ahead_->take()) {
      if (stopped_) return std::nullopt;
      auto& item = opened->item;
      if (opened->decoded.failure.reason == kUnreadableShard) require_some_shard();
      place_ = item.after;
      Sample sample = without_picture(item);
      if (!share_.is_whole()) {
        ++divided_;
        if (!opened->decoded.picture) opened->decoded.picture.emplace();
      }
      if (!opened->decoded.picture) {
        skips_.add(sample.key, opened->decoded.failure.reason, opened->decoded.failure.detail);
        continue;
      }
      sample.picture = std::move(*opened->decoded.picture);
      sample.index = given_++;
      return sample;
    }
    if (stopped_) return std::nullopt;
    place_ = {paths_.size(), 0, 0};
    if (given_ == 0 && !wanted_) {
      throw Error(cat("no picture in the ", paths_.size(), " files of shards:", options_.pattern,
                      " can be used (",
                      skips_.counts().empty() ? "there are none" : skips_.summary(), ")"));
    }
    return std::nullopt;
  }

  // "order given [rank path end]" after a whole shard, "order given rank path offset items" inside
  // one, with its path in percent code.
  std::string position() const override {
    const auto begin = cat(options_.order, ' ', given_);
    const bool inside = place_.offset > 0 || place_.items > 0;
    if (!inside && place_.shard == 0) return begin;
    const auto& shard = listing_[inside ? place_.shard : place_.shard - 1];
    const auto named = cat(begin, ' ', shard.rank, ' ', encode_percent(shard.path));
    return inside ? cat(named, ' ', place_.offset, ' ', place_.items) : cat(named, " end");
  }

  void seek(const std::string& position) override {
    const auto parts = split(position, ' ');
    const auto refuse = [&] {
      throw Error(cat("'", position, "' is not a position in shards:", options_.pattern,
                      "?order=", options_.order));
    };
    if (parts.size() < 2 || parts[0] != options_.order) refuse();
    const auto count = [&](std::size_t i) {
      const auto number = parse_integer(parts[i], "a number in a position in shards");
      if (number < 0) refuse();
      return number;
    };
    const auto given = count(1);
    ShardPlace place;
    if (parts.size() > 2) {
      const bool at_end = parts.size() == 5 && parts[4] == "end";
      if (!at_end && parts.size() != 6) refuse();
      const ListedPicture shard{.rank = count(2), .path = decode_percent(parts[3])};
      const auto first = std::lower_bound(listing_.begin(), listing_.end(), shard);
      place.shard = static_cast<std::size_t>(first - listing_.begin());
      if (!at_end) {
        place.offset = count(4);
        place.items = count(5);
      }
      const bool is_there = first != listing_.end() && *first == shard;
      if (is_there && at_end) ++place.shard;
      if (!is_there) place = {place.shard, 0, 0};
    }
    ahead_.reset();
    place_ = place;
    given_ = static_cast<std::uint64_t>(given);
  }

  bool divide(const StreamShare& share) override {
    ahead_.reset();
    share_ = share;
    divided_ = 0;
    return true;
  }

  bool keep_only(const std::function<bool(const Sample&)>& wanted) override {
    ahead_.reset();
    wanted_ = wanted;
    return true;
  }

  void stop() override { stopped_ = true; }

  std::map<std::string, std::int64_t> skipped() const override { return skips_.counts(); }

 private:
  void start() {
    reader_.emplace(paths_, options_.labels, place_, stopped_);
    ahead_.emplace(
        options_.decoding.threads, kAheadBytes,
        // While the stream is divided, each item is a sample.
        [this, before = divided_]() mutable {
          auto item = next_wanted();
          if (item) item->is_passed_over = !share_.has(before++);
          return item;
        },
        [this](ShardItem&& item) { return open(std::move(item)); },
        [](const OpenedItem& opened) { return weight(opened.decoded); });
  }

  std::optional<ShardItem> next_wanted() {
    auto item = reader_->next();
    while (item && wanted_ && item->failure.reason.empty() && !wanted_(without_picture(*item))) {
      item = reader_->next();
    }
    return item;
  }

  Sample without_picture(const ShardItem& item) const {
    Sample sample;
    sample.label = item.label;
    sample.key = paths_[item.shard];
    if (!item.member.empty()) sample.key += ':' + item.member;
    return sample;
  }

  // If all shards are gone, everything left would be skipped, and a run would take it for the end.
  void require_some_shard() const {
    const auto is_there = [](const std::string& path) {
      std::error_code ignored;
      return std::filesystem::exists(path, ignored);
    };
    if (std::ranges::any_of(paths_, is_there)) return;
    throw Error(cat("the ", paths_.size(), " files of shards:", options_.pattern, " are gone"),
                ErrorKind::failure);
  }

  OpenedItem open(ShardItem item) const {
    OpenedItem opened;
    if (!item.failure.reason.empty()) {
      opened.decoded.failure = std::move(item.failure);
    } else if (item.is_passed_over) {
      opened.decoded = pass_over(item.bytes, options_.decoding);
    } else {
      opened.decoded = decode(item.bytes, options_.decoding);
    }
    item.bytes = {};  // not needed while the picture waits
    opened.item = std::move(item);
    return opened;
  }

  const ShardsOptions options_;
  const std::vector<ListedPicture> listing_;
  std::vector<std::string> paths_;
  SkipLog skips_;
  ShardPlace place_;
  std::uint64_t given_ = 0;
  std::function<bool(const Sample&)> wanted_;  // empty: all are
  StreamShare share_;
  std::int64_t divided_ = 0;  // samples given since the stream was divided
  std::atomic<bool> stopped_ = false;
  std::optional<ShardReader> reader_;                      // from place_ on, once reading has begun
  std::optional<PullAhead<ShardItem, OpenedItem>> ahead_;  // its threads use the members above
};

}  // namespace

std::unique_ptr<Stream> open_shards(Uri& uri) {
  return std::make_unique<ShardsStream>(shards_options(uri));
}

}  // namespace riffle

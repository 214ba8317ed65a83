#include "riffle/stream/folder.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <limits>
#include <thread>
#include <utility>

#include "riffle/base/error.h"
#include "riffle/base/file.h"
#include "riffle/base/text.h"
#include "riffle/image/codec.h"
#include "riffle/stream/picture_listing.h"
#include "riffle/stream/read_ahead.h"
#include "riffle/stream/skip_log.h"

namespace riffle {
namespace fs = std::filesystem;
namespace {

constexpr std::uint64_t kMaxFileBytes = std::uint64_t{256} << 20;
constexpr std::uint64_t kAheadBytes = std::uint64_t{64} << 20;
// What even the smallest result counts for, so that tiny pictures and failures do not pile up by
// the thousand.
constexpr std::uint64_t kLeastBytes = std::uint64_t{64} << 10;
constexpr int kMaxThreads = 256;
constexpr int kMaxSize = 16384;

struct Loaded {
  std::optional<Picture> picture;
  DecodeFailure failure;
};

std::uint64_t weight(const Loaded& loaded) {
  return kLeastBytes + (loaded.picture ? loaded.picture->rgb.size() : 0);
}

Loaded load(const fs::path& path, const DecodeOptions& options) {
  Loaded loaded;
  std::error_code error;
  const auto size = fs::file_size(path, error);
  if (error) {
    loaded.failure = {"unreadable", error.message()};
    return loaded;
  }
  if (size > kMaxFileBytes) {
    loaded.failure = {"too large", bytes_text(size)};
    return loaded;
  }
  try {
    loaded.picture = decode(read_bytes(path), options, loaded.failure);
  } catch (const Error& unreadable) {
    loaded.failure = {"unreadable", unreadable.what()};
  }
  return loaded;
}

struct FolderOptions {
  fs::path root;
  std::string order_name;
  ListingOrder order = ListingOrder::name;
  std::uint64_t seed = 0;
  bool labels = true;
  int threads = 0;
  DecodeOptions decoding;
};

FolderOptions read_options(Uri& uri) {
  FolderOptions options;
  if (uri.path().empty()) throw Error("folder: needs a path, such as folder:/data/photos");
  options.root = uri.path();
  options.order_name = uri.get_choice("order", {"name", "time", "shuffle"});
  if (options.order_name == "time") options.order = ListingOrder::time;
  if (options.order_name == "shuffle") options.order = ListingOrder::shuffle;
  options.labels = uri.get_choice("label", {"dir", "none"}) == "dir";
  options.seed = static_cast<std::uint64_t>(
      uri.get_integer("seed", 0, 0, std::numeric_limits<std::int64_t>::max()));
  options.decoding.short_side = static_cast<int>(uri.get_integer("size", 0, 0, kMaxSize));
  const int cores =
      std::clamp(static_cast<int>(std::thread::hardware_concurrency()), 1, kMaxThreads);
  options.threads = static_cast<int>(uri.get_integer("threads", cores, 0, kMaxThreads));
  uri.refuse_unknown();
  return options;
}

class FolderStream : public Stream {
 public:
  explicit FolderStream(FolderOptions options)
      : options_(std::move(options)),
        pictures_(list_pictures(options_.root, options_.order, options_.seed, skips_)),
        ahead_(
            options_.threads, kAheadBytes,
            [this](std::int64_t i) {
              return load(path(static_cast<std::size_t>(i)), options_.decoding);
            },
            weight) {
    if (pictures_.empty()) {
      throw Error(cat("no pictures (.jpg, .jpeg, .png) in the folder ", options_.root.string()));
    }
  }

  std::optional<Sample> next() override {
    if (!reading_) {
      ahead_.start(static_cast<std::int64_t>(next_), static_cast<std::int64_t>(pictures_.size()));
      reading_ = true;
    }
    while (next_ < pictures_.size()) {
      const std::size_t i = next_;
      Loaded loaded = ahead_.take();
      ++next_;
      if (!loaded.picture) {
        skips_.add(path(i).string(), loaded.failure.reason, loaded.failure.detail);
        continue;
      }
      Sample sample;
      sample.picture = std::move(*loaded.picture);
      sample.index = given_++;
      sample.key = path(i).string();
      if (options_.labels) sample.label = folder_below_root(pictures_[i].path);
      return sample;
    }
    if (given_ == 0) {
      throw Error(cat("none of the ", pictures_.size(), " pictures in the folder ",
                      options_.root.string(), " can be decoded (", skips_.summary(), ")"));
    }
    return std::nullopt;
  }

  // "order given [rank path]": the last file behind the reader, if any, with its path in percent
  // code.
  std::string position() const override {
    const auto begin = cat(options_.order_name, ' ', given_);
    if (next_ == 0) return begin;
    const auto& last = pictures_[next_ - 1];
    return cat(begin, ' ', last.rank, ' ', encode_percent(last.path));
  }

  void seek(const std::string& position) override {
    const auto parts = split(position, ' ');
    if ((parts.size() != 2 && parts.size() != 4) || parts[0] != options_.order_name) {
      throw Error(cat("'", position, "' is no position in folder:", options_.root.string(),
                      "?order=", options_.order_name));
    }
    const auto given = parse_integer(parts[1], "the count in a folder position");
    if (given < 0)
      throw Error(cat("the count in the folder position '", position, "' is negative"));
    std::size_t next = 0;
    if (parts.size() == 4) {
      const ListedPicture last{parse_integer(parts[2], "the rank in a folder position"),
                               decode_percent(parts[3])};
      const auto behind = std::upper_bound(pictures_.begin(), pictures_.end(), last);
      next = static_cast<std::size_t>(behind - pictures_.begin());
    }
    given_ = static_cast<std::uint64_t>(given);
    next_ = next;
    reading_ = false;
  }

  std::map<std::string, std::int64_t> skipped() const override { return skips_.counts(); }

 private:
  fs::path path(std::size_t i) const { return options_.root / pictures_[i].path; }

  static std::string folder_below_root(const std::string& relative) {
    const auto slash = relative.find('/');
    return slash == std::string::npos ? std::string() : relative.substr(0, slash);
  }

  const FolderOptions options_;
  SkipLog skips_;
  const std::vector<ListedPicture> pictures_;
  std::size_t next_ = 0;
  std::uint64_t given_ = 0;
  bool reading_ = false;     // whether ahead_ stands at next_
  ReadAhead<Loaded> ahead_;  // last: its threads use the members above
};

}  // namespace

std::unique_ptr<Stream> open_folder(Uri& uri) {
  return std::make_unique<FolderStream>(read_options(uri));
}

}  // namespace riffle

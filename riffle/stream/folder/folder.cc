#include "riffle/stream/folder/folder.h"

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <filesystem>
#include <optional>
#include <utility>
#include <vector>

#include "riffle/base/error.h"
#include "riffle/base/text.h"
#include "riffle/stream/folder/folder_options.h"
#include "riffle/stream/folder/watched_folder.h"
#include "riffle/stream/read_ahead.h"
#include "riffle/stream/skip_log.h"

namespace riffle {
namespace {

// A disk that was taken away leaves its mount point, empty.
bool is_gone_or_empty(const std::filesystem::path& folder) {
  std::error_code error;
  const bool empty = std::filesystem::is_empty(folder, error);
  return empty || error;
}

class FolderStream : public Stream {
 public:
  explicit FolderStream(FolderOptions options)
      : options_(std::move(options)),
        listing_(options_.part.of(list_pictures(options_.root, options_.rules, skips_),
                                  "folder:" + options_.root.string())) {
    if (listing_.empty()) {
      throw Error(cat("no pictures (JPEG, PNG, WebP, TIFF, BMP, GIF, HEIC, AVIF) in the folder ",
                      options_.root.string()));
    }
  }

  std::optional<Sample> next() override {
    if (!ahead_) begin_ahead();
    while (!stopped_ && next_ < listing_.size()) {
      const auto& listed = listing_[next_++];
      auto [picture, failure] = ahead_->take();
      const auto path = (options_.root / listed.path).string();
      // Everything left would be skipped, and a run would take it for the end.
      if (failure.reason == kUnreadable && is_gone_or_empty(options_.root)) {
        throw Error(cat("the folder ", options_.root.string(), " is gone or empty (", path, ": ",
                        failure.detail, ")"),
                    ErrorKind::failure);
      }
      last_ = listed;
      if (!share_.is_whole()) {
        ++divided_;
        if (!picture) picture.emplace();
      }
      if (picture) return folder_sample(options_, listed.path, std::move(*picture), given_++);
      skips_.add(path, failure.reason, failure.detail);
    }
    if (!stopped_ && given_ == 0 && !listing_.empty()) {
      throw Error(cat("none of the ", listing_.size(), " pictures in the folder ",
                      options_.root.string(), " can be decoded (", skips_.summary(), ")"));
    }
    return std::nullopt;
  }

  // "order given [rank path]": the last file read, if any, with its path in percent code.
  std::string position() const override {
    const auto text = cat(options_.order_name, ' ', given_);
    return last_ ? cat(text, ' ', last_->rank, ' ', encode_percent(last_->path)) : text;
  }

  void seek(const std::string& position) override {
    const auto words = split(position, ' ');
    if ((words.size() != 2 && words.size() != 4) || words[0] != options_.order_name) {
      throw not_a_position(options_, position);
    }
    const auto given = parse_given(words[1]);
    std::optional<ListedPicture> last;
    if (words.size() == 4) {
      last = {0, parse_integer(words[2], "the rank in a folder position"),
              decode_percent(words[3])};
    }
    const auto next =
        last ? std::upper_bound(listing_.begin(), listing_.end(), *last) : listing_.begin();
    next_ = static_cast<std::size_t>(next - listing_.begin());
    last_ = std::move(last);
    given_ = given;
    if (!share_.is_whole()) ahead_.reset();  // each file has another place in the share now
    if (ahead_) start_ahead();
  }

  bool divide(const StreamShare& share) override {
    ahead_.reset();
    share_ = share;
    divided_ = 0;
    return true;
  }

  bool keep_only(const std::function<bool(const Sample&)>& wanted) override {
    ahead_.reset();
    const auto begin = listing_.begin() + static_cast<std::ptrdiff_t>(next_);
    const auto is_unwanted = [&](const ListedPicture& listed) {
      return !wanted(folder_sample(options_, listed.path, {}, 0));
    };
    next_ -= static_cast<std::size_t>(std::count_if(listing_.begin(), begin, is_unwanted));
    std::erase_if(listing_, is_unwanted);
    return true;
  }

  // A folder of many files that cannot be decoded is long to read.
  void stop() override { stopped_ = true; }

  std::map<std::string, std::int64_t> skipped() const override { return skips_.counts(); }

 private:
  void begin_ahead() {
    // While the stream is divided, each file is a sample.
    const std::int64_t first = static_cast<std::int64_t>(next_) - divided_;
    ahead_.emplace(
        options_.decoding.threads, kAheadBytes,
        [this, first](std::int64_t i) {
          const std::string& path = listing_[static_cast<std::size_t>(i)].path;
          return share_.has(i - first) ? load_picture(options_, path)
                                       : pass_over_picture(options_, path);
        },
        [](const Decoded& decoded) { return weight(decoded); });
    start_ahead();
  }
  void start_ahead() {
    ahead_->start(static_cast<std::int64_t>(next_), static_cast<std::int64_t>(listing_.size()));
  }

  const FolderOptions options_;
  SkipLog skips_;
  std::vector<ListedPicture> listing_;
  std::size_t next_ = 0;
  std::optional<ListedPicture> last_;  // reading continues after it, whether it is there or not
  std::uint64_t given_ = 0;
  StreamShare share_;
  std::int64_t divided_ = 0;  // samples given since the stream was divided
  std::atomic<bool> stopped_ = false;
  std::optional<ReadAhead<Decoded>> ahead_;  // its threads use the members above
};

}  // namespace

std::unique_ptr<Stream> open_folder(Uri& uri) {
  auto options = read_folder_options(uri);
  if (options.watch) return open_watched_folder(std::move(options));
  return std::make_unique<FolderStream>(std::move(options));
}

}  // namespace riffle

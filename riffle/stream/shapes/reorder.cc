#include "riffle/stream/shapes/reorder.h"

#include <algorithm>
#include <limits>
#include <mutex>
#include <numeric>
#include <utility>

#include "riffle/base/log.h"
#include "riffle/base/random.h"
#include "riffle/base/text.h"
#include "riffle/stream/shapes/shape_position.h"
#include "riffle/stream/skip_log.h"

namespace riffle {
namespace {

struct ReorderOptions {
  std::string shape;
  bool clips_apart = false;
  std::int64_t window = 0;
  std::uint64_t memory = 0;  // bytes
  std::uint64_t seed = 0;
};

// A sample of the window: held, or where to read it again.
struct ReorderedPlace {
  std::int64_t clip;
  std::optional<Sample> held;
  std::string position;
};

// Moves a sample of another clip between neighbours of one clip, as far as there are any.
void part_neighbours(std::vector<std::size_t>& order, const std::vector<ReorderedPlace>& places) {
  const auto alike = [&](std::size_t a, std::size_t b) {
    const auto clip = places[order[a]].clip;
    return clip != kNoClip && clip == places[order[b]].clip;
  };
  std::size_t other = 0;  // first after i that may differ; those in between are of one clip
  for (std::size_t i = 1; i < order.size(); ++i) {
    if (!alike(i - 1, i)) continue;
    other = std::max(other, i + 1);
    while (other < order.size() && alike(i - 1, other)) ++other;
    if (other == order.size()) return;
    std::swap(order[i], order[other]);
  }
}

class ReorderStream : public Shape {
 public:
  ReorderStream(std::unique_ptr<Stream> below, StreamFactory reopen, ReorderOptions options)
      : Shape(std::move(below)),
        options_(std::move(options)),
        reopen_(std::move(reopen)),
        window_start_(this->below().position()) {
    log_warning(cat("the shape ", options_.shape, " breaks the streaming rule: it reads up to ",
                    options_.window, " samples ahead and changes their order. For reference only"));
  }

  std::optional<Sample> next() override {
    while (true) {
      if (!collected_ && !collect()) return std::nullopt;
      while (done_ < order_.size()) {
        auto sample = fetch(places_[order_[done_]]);
        if (!sample && stopped()) return std::nullopt;
        ++done_;
        if (!sample) continue;
        sample->index = given_++;
        return sample;
      }
      if (order_.empty()) return std::nullopt;
      window_start_ = below().position();
      ++window_;
      done_ = 0;
      collected_ = false;
    }
  }

  std::string position() const override {
    return write_position(options_.shape, {{static_cast<std::int64_t>(given_), window_,
                                            static_cast<std::int64_t>(done_)},
                                           {window_start_}});
  }

  void seek(const std::string& position) override {
    const auto read = read_position(options_.shape, position, 3, 1);
    below().seek(read.below[0]);
    window_start_ = read.below[0];
    given_ = static_cast<std::uint64_t>(read.numbers[0]);
    window_ = read.numbers[1];
    done_ = static_cast<std::size_t>(read.numbers[2]);
    collected_ = false;
  }

  void stop() override {
    Shape::stop();
    const std::lock_guard lock(fetcher_mutex_);
    if (fetcher_) fetcher_->stop();
  }

  std::map<std::string, std::int64_t> skipped() const override {
    auto counts = Shape::skipped();
    for (const auto& [reason, count] : gone_.counts()) counts[reason] += count;
    return counts;
  }

 private:
  // Reads the window from where the stream below is. Returns false if stop() was called meanwhile.
  bool collect() {
    places_.clear();
    std::uint64_t bytes = 0;
    while (static_cast<std::int64_t>(places_.size()) < options_.window) {
      if (stopped()) return false;
      const bool hold = bytes < options_.memory;
      std::string position = hold ? std::string() : below().position();
      auto sample = below().next();
      if (!sample && stopped()) return false;
      if (!sample) break;
      bytes += sample->picture.rgb.size() + sizeof(ReorderedPlace);
      const auto clip = sample->clip;
      places_.push_back({clip, hold ? std::move(sample) : std::nullopt, std::move(position)});
    }
    order_.resize(places_.size());
    std::iota(order_.begin(), order_.end(), std::size_t{0});
    Random random(options_.seed, Purpose("shuffle"), static_cast<std::uint64_t>(window_));
    for (std::size_t i = order_.size(); i > 1; --i)
      std::swap(order_[i - 1], order_[random.below(i)]);
    if (options_.clips_apart) part_neighbours(order_, places_);
    collected_ = true;
    return true;
  }

  std::optional<Sample> fetch(ReorderedPlace& place) {
    if (place.held) return std::exchange(place.held, std::nullopt);
    if (!fetcher_) {
      auto opened = reopen_();
      const std::lock_guard lock(fetcher_mutex_);
      fetcher_ = std::move(opened);
      if (stopped()) fetcher_->stop();
    }
    fetcher_->seek(place.position);
    auto sample = fetcher_->next();
    if (!sample && !stopped()) gone_.add(place.position, "gone", "not found again");
    return sample;
  }

  const ReorderOptions options_;
  const StreamFactory reopen_;
  std::string window_start_;
  std::uint64_t given_ = 0;
  std::int64_t window_ = 0;
  std::size_t done_ = 0;    // of the window
  bool collected_ = false;  // whether the following two are those of the window
  std::vector<ReorderedPlace> places_;
  std::vector<std::size_t> order_;
  std::mutex fetcher_mutex_;
  std::unique_ptr<Stream> fetcher_;  // set once, under the mutex
  SkipLog gone_;
};

std::unique_ptr<Stream> open(const std::string& shape, bool clips_apart, Uri& options,
                             const StreamFactory& below) {
  ReorderOptions read;
  read.shape = shape;
  read.clips_apart = clips_apart;
  read.window = options.get_integer("window", 1 << 18, 2, std::int64_t{1} << 32);
  read.memory = static_cast<std::uint64_t>(options.get_integer("memory", 1024, 0, 1 << 24)) << 20;
  read.seed = static_cast<std::uint64_t>(
      options.get_integer("seed", 0, 0, std::numeric_limits<std::int64_t>::max()));
  options.refuse_unknown();
  return std::make_unique<ReorderStream>(below(), below, std::move(read));
}

}  // namespace

std::unique_ptr<Stream> shape_shuffle(Uri& options, const StreamFactory& below) {
  return open("shuffle", false, options, below);
}

std::unique_ptr<Stream> shape_decorrelate(Uri& options, const StreamFactory& below) {
  return open("decorrelate", true, options, below);
}

}  // namespace riffle

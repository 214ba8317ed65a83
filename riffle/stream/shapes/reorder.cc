#include "riffle/stream/shapes/reorder.h"

#include <algorithm>
#include <iterator>
#include <limits>
#include <utility>

#include "riffle/base/log.h"
#include "riffle/base/random.h"
#include "riffle/base/text.h"
#include "riffle/stream/shapes/sample_spool.h"
#include "riffle/stream/shapes/shape_position.h"

namespace riffle {
namespace {

struct ReorderOptions {
  std::string shape;
  bool clips_apart = false;
  std::int64_t window = 0;
  std::uint64_t memory = 0;  // bytes
  std::uint64_t seed = 0;
};

// Samples that get their order together are held together: at least this many, as far as there are.
constexpr std::size_t kBlock = 1024;
constexpr std::int64_t kMostCells = 512;

// Moves a sample of another clip between neighbours of one clip, as far as there are any. `last`:
// the clip of the sample before them.
void part_neighbours(std::vector<KeyedSample>& samples, std::int64_t last) {
  const auto alike = [&](std::size_t i, std::int64_t before) {
    return before != kNoClip && samples[i].sample.clip == before;
  };
  std::size_t other = 0;  // first after i that may differ; those in between are of one clip
  for (std::size_t i = 0; i < samples.size(); ++i) {
    if (alike(i, last)) {
      other = std::max(other, i + 1);
      while (other < samples.size() && alike(other, last)) ++other;
      if (other == samples.size()) return;
      std::swap(samples[i], samples[other]);
    }
    last = samples[i].sample.clip;
  }
}

// Each sample of a window draws a key, and they come in the order of their keys. The keys are cut
// into cells, so that what memory cannot hold is written to disk, and read back, a cell at a time.
class ReorderStream : public Shape {
 public:
  ReorderStream(std::unique_ptr<Stream> below, ReorderOptions options)
      : Shape(std::move(below)),
        options_(std::move(options)),
        cells_(static_cast<std::size_t>(std::clamp<std::int64_t>(
            options_.window / static_cast<std::int64_t>(kBlock), 1, kMostCells))),
        window_start_(this->below().position()) {
    log_warning(cat("the shape ", options_.shape, " breaks the streaming rule: it reads up to ",
                    options_.window, " samples ahead and changes their order. For reference only"));
  }

  std::optional<Sample> next() override {
    while (true) {
      if (!collected_ && !collect()) return std::nullopt;
      if (block_.empty() && cell_ < cells_) load_block();
      if (!block_.empty()) {
        Sample sample = std::move(block_.back().sample);
        block_.pop_back();
        ++done_;
        sample.index = given_++;
        return sample;
      }
      if (cell_ < cells_) continue;
      if (done_ == 0) return std::nullopt;
      window_start_ = below().position();
      ++window_;
      done_ = 0;
      collected_ = false;
    }
  }

  std::optional<std::int64_t> period() const override { return below().period(); }

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

 private:
  // Reads the window from where the stream below is, and goes to the place `done_` in it. Returns
  // false if stop() was called meanwhile.
  bool collect() {
    held_.assign(cells_, {});
    counts_.assign(cells_, 0);
    spool_.emplace(cells_);
    block_.clear();
    cell_ = 0;
    last_clip_ = kNoClip;
    std::uint64_t bytes = 0;
    for (std::int64_t read = 0; read < options_.window; ++read) {
      if (stopped()) return false;
      auto sample = below().next();
      if (!sample && stopped()) return false;
      if (!sample) break;
      Random random(options_.seed, Purpose("shuffle"),
                    static_cast<std::uint64_t>(window_ * options_.window + read));
      KeyedSample keyed{random.bits64(), std::move(*sample)};
      const auto cell =
          static_cast<std::size_t>((static_cast<__uint128_t>(keyed.key) * cells_) >> 64);
      ++counts_[cell];
      const Picture& picture = keyed.sample.picture;
      bytes += picture.rgb.size() + (picture.file ? picture.file->size() : 0) + sizeof(KeyedSample);
      if (bytes <= options_.memory) {
        held_[cell].push_back(std::move(keyed));
      } else {
        spool_->append(cell, keyed);
      }
    }
    collected_ = true;
    // What was given before is drawn again, because a block's order depends on the one before it.
    for (std::size_t left = done_; left > 0 && cell_ < cells_;) {
      load_block();
      const std::size_t again = std::min(left, block_.size());
      block_.resize(block_.size() - again);
      left -= again;
    }
    return true;
  }

  // Takes whole cells until they are a block, in the order in which it will be given, last first.
  void load_block() {
    block_.clear();
    for (std::size_t count = 0; cell_ < cells_ && count < kBlock; ++cell_) {
      count += counts_[cell_];
      auto spooled = spool_->take(cell_);
      for (auto* part : {&held_[cell_], &spooled}) {
        std::ranges::move(*part, std::back_inserter(block_));
      }
      held_[cell_] = {};
    }
    std::ranges::stable_sort(block_, {}, &KeyedSample::key);
    if (options_.clips_apart) part_neighbours(block_, last_clip_);
    if (!block_.empty()) last_clip_ = block_.back().sample.clip;
    std::ranges::reverse(block_);
  }

  const ReorderOptions options_;
  const std::size_t cells_;
  std::string window_start_;
  std::uint64_t given_ = 0;
  std::int64_t window_ = 0;
  std::size_t done_ = 0;    // of the window
  bool collected_ = false;  // whether the following are those of the window
  std::vector<std::vector<KeyedSample>> held_;
  std::vector<std::size_t> counts_;  // by cell
  std::optional<SampleSpool> spool_;
  std::size_t cell_ = 0;  // the next to be taken
  std::vector<KeyedSample> block_;
  std::int64_t last_clip_ = kNoClip;
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
  return std::make_unique<ReorderStream>(below(), std::move(read));
}

}  // namespace

std::unique_ptr<Stream> shape_shuffle(Uri& options, const StreamFactory& below) {
  return open("shuffle", false, options, below);
}

std::unique_ptr<Stream> shape_decorrelate(Uri& options, const StreamFactory& below) {
  return open("decorrelate", true, options, below);
}

}  // namespace riffle

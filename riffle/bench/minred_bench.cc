#include "riffle/bench/minred_bench.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>
#include <numeric>

#include <ATen/ATen.h>

#include "riffle/base/error.h"
#include "riffle/base/median.h"
#include "riffle/base/text.h"
#include "riffle/bench/minred_bench_history.h"
#include "riffle/tensors/named_tensors.h"

#if RIFFLE_CUDA
#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDAFunctions.h>
#endif

namespace riffle {
namespace {

using Slots = std::vector<std::int64_t>;

constexpr std::int64_t kFirstFramesPerClip = 4;  // MinRed has thinned out the past already
constexpr std::int64_t kFramesPerClip = 64;
constexpr std::int64_t kFillBlock = 8192;
constexpr double kMomentum = 0.5;
constexpr double kSameDistance = 1e-6;
constexpr std::uint64_t kMostMatrixBytesCpu = 4ull << 30;
constexpr std::uint64_t kMostMatrixBytesGpu = 40ull << 30;
constexpr float kGone = -std::numeric_limits<float>::infinity();

// Time and memory on a device, at points where all its work is done.
class Meter {
 public:
  explicit Meter(at::Device device) : device_(device) {}

  template <typename Work>
  double milliseconds(const Work& work) {
    finish();
    const std::uint64_t before = start_memory();
    const auto start = std::chrono::steady_clock::now();
    work();
    finish();
    const std::chrono::duration<double, std::milli> passed =
        std::chrono::steady_clock::now() - start;
    scratch_ = std::max(scratch_, peak() - std::min(peak(), before));
    return passed.count();
  }
  // The most that was taken, beyond what was held at the start, by any work timed since the last
  // call.
  std::uint64_t take_scratch() { return std::exchange(scratch_, 0); }

#if RIFFLE_CUDA
  void finish() const {
    if (device_.is_cuda()) c10::cuda::device_synchronize();
  }
  std::uint64_t held() const { return stat().current; }
  std::uint64_t peak() const { return stat().peak; }

 private:
  std::uint64_t start_memory() const {
    if (device_.is_cuda()) c10::cuda::CUDACachingAllocator::resetPeakStats(index());
    return held();
  }
  struct Stat {
    std::uint64_t current = 0;
    std::uint64_t peak = 0;
  };
  c10::DeviceIndex index() const {
    return device_.has_index() ? device_.index() : c10::cuda::current_device();
  }
  Stat stat() const {
    if (!device_.is_cuda()) return {};
    const auto stats = c10::cuda::CUDACachingAllocator::getDeviceStats(index());
    return {static_cast<std::uint64_t>(stats.allocated_bytes[0].current),
            static_cast<std::uint64_t>(stats.allocated_bytes[0].peak)};
  }
#else
  void finish() const {}
  std::uint64_t held() const { return 0; }
  std::uint64_t peak() const { return 0; }

 private:
  std::uint64_t start_memory() const { return 0; }
#endif

  at::Device device_;
  std::uint64_t scratch_ = 0;
};

// Cosine similarities of all live rows, none with itself.
at::Tensor similarities(const at::Tensor& rows, const Slots& live, at::ScalarType type) {
  at::Tensor z = rows.index_select(0, integers_tensor(live).to(rows.device())).to(type);
  z.div_(z.norm(2, {1}, true));
  at::Tensor similarity = at::mm(z, z.t());
  similarity.fill_diagonal_(kGone);
  return similarity;
}

void forget(at::Tensor& similarity, std::int64_t row) {
  similarity.select(0, row).fill_(kGone);
  similarity.select(1, row).fill_(kGone);
}

// Who leaves, by the full matrix in float32, as the authors have it.
Slots authors_removals(const at::Tensor& rows, const Slots& live,
                       const std::vector<std::uint64_t>& ages, std::int64_t n) {
  at::Tensor similarity = similarities(rows, live, at::kFloat);
  Slots taken;
  for (std::int64_t step = 0; step < n; ++step) {
    const auto flat = similarity.view({-1}).argmax().item<std::int64_t>();
    const std::int64_t a = flat / similarity.size(1), b = flat % similarity.size(1);
    const std::int64_t leaver = ages[live[a]] < ages[live[b]] ? a : b;
    taken.push_back(live[leaver]);
    forget(similarity, leaver);
  }
  return taken;
}

// Whether `taken` is what the definition removes, by the full matrix in float64: at each step the
// nearest pair has an end that left, to within kSameDistance, and it is the older one. The authors'
// float32 matrix is itself off by several times that, so it cannot be the judge where the two ways
// differ.
bool by_definition(const at::Tensor& rows, const Slots& live,
                   const std::vector<std::uint64_t>& ages, const Slots& taken) {
  at::Tensor similarity = similarities(rows, live, at::kDouble);
  for (const std::int64_t slot : taken) {
    const auto leaver = std::find(live.begin(), live.end(), slot) - live.begin();
    const at::Tensor row = similarity[leaver];
    const double nearest = row.max().item<double>();
    if (similarity.max().item<double>() - nearest >= kSameDistance) return false;
    const at::Tensor partners = row.ge(nearest - kSameDistance).nonzero().view({-1}).cpu();
    bool older = false;
    for (std::int64_t i = 0; i < partners.numel(); ++i) {
      older = older || ages[slot] < ages[live[partners[i].item<std::int64_t>()]];
    }
    if (!older) return false;
    forget(similarity, leaver);
  }
  return true;
}

class Bench {
 public:
  explicit Bench(const MinredBenchConfig& config)
      : config_(config),
        meter_(config.device),
        history_(config.capacity + config.batch, config.dim, config.device, config.seed),
        random_(config.seed, Purpose("minred bench draws"), 0),
        ages_(config.capacity + config.batch, 0) {
    NearestIndexConfig made;
    made.slots = config.capacity + config.batch;
    made.dim = config.dim;
    made.type = config.type;
    made.device = config.device;
    made.neighbours = config.neighbours;
    made.merge = config.merge;
    const std::uint64_t before = meter_.held();
    index_ = NearestIndex::create(made);
    held_ = meter_.held() - before;
    predicted_ = NearestIndex::bytes(made);
    live_.resize(config.capacity);
    std::iota(live_.begin(), live_.end(), 0);
    free_.resize(config.batch);
    std::iota(free_.begin(), free_.end(), config.capacity);
    for (std::int64_t at = 0; at < config.capacity; at += kFillBlock) {
      const auto count = std::min(kFillBlock, config.capacity - at);
      const Slots slots(live_.begin() + at, live_.begin() + at + count);
      arrive(slots, kFirstFramesPerClip);
    }
  }

  MinredBenchResult run() {
    MinredBenchResult result;
    const std::uint64_t count = config_.capacity + config_.batch;
    const std::uint64_t most = config_.device.is_cuda() ? kMostMatrixBytesGpu : kMostMatrixBytesCpu;
    if (config_.authors_batches == 0 || config_.merge) {
      result.authors_skipped = "not asked for";
    } else if (count * count * 4 > most) {
      result.authors_skipped = cat("a matrix of ", count, " x ", count, " float32 numbers takes ",
                                   bytes_text(count * count * 4));
    }
    for (std::int64_t i = 0; i < config_.warm_batches; ++i) stream_batch(false);
    totals_.clear(), steps_.clear(), takes_.clear();
    meter_.take_scratch();
    const NearestIndexStats before = index_->stats();
    bool same = true;
    for (std::int64_t i = 0; i < config_.batches; ++i) {
      const bool authors = result.authors_skipped.empty() && i < config_.authors_batches;
      same = stream_batch(authors) && same;
    }
    result.stats = index_->stats();
    result.per_stream_batch_ms = median(totals_);
    result.per_step_ms = median(steps_);
    result.take_ms = median(takes_);
    result.rescanned_per_batch = static_cast<double>(result.stats.rescanned - before.rescanned) /
                                 static_cast<double>(config_.batches);
    result.peak_bytes = config_.device.is_cuda() ? held_ + scratch_ : predicted_;
    if (result.authors_skipped.empty()) {
      result.authors_per_step_ms = median(authors_steps_);
      result.authors_per_stream_batch_ms =
          median(authors_takes_) + result.authors_per_step_ms * config_.updates;
      result.ratio = result.authors_per_stream_batch_ms / result.per_stream_batch_ms;
      result.same_evictions = same;
      result.authors_peak_bytes = config_.device.is_cuda() ? authors_scratch_ : count * count * 4;
    }
    return result;
  }

 private:
  std::vector<std::uint64_t> ages_of(const Slots& slots) const {
    std::vector<std::uint64_t> ages;
    for (const std::int64_t slot : slots) ages.push_back(ages_[slot]);
    return ages;
  }

  double arrive(const Slots& slots, std::int64_t frames_per_clip) {
    history_.arrive(slots, frames_per_clip);
    for (const std::int64_t slot : slots) ages_[slot] = arrivals_++;
    const at::Tensor features = history_.features(slots);
    const auto ages = ages_of(slots);
    const std::vector<double> weights(slots.size(), 1.0);
    return meter_.milliseconds([&] {
      if (config_.merge) index_->weigh(slots, weights);
      index_->set(slots, ages, features);
    });
  }

  Slots draw() {
    // The first of a partial shuffle.
    for (std::int64_t i = 0; i < config_.batch; ++i) {
      std::swap(live_[i], live_[i + random_.below(live_.size() - i)]);
    }
    return {live_.begin(), live_.begin() + config_.batch};
  }

  // The same in plain tensor operations.
  double track_as_authors(const Slots& slots, const at::Tensor& features) {
    if (!authors_rows_.defined()) authors_rows_ = index_->rows().to(at::kFloat).clone();
    return meter_.milliseconds([&] {
      const at::Tensor where = integers_tensor(slots).to(config_.device);
      const at::Tensor z = features / features.norm(2, {1}, true);
      const at::Tensor moved =
          kMomentum * authors_rows_.index_select(0, where) + (1 - kMomentum) * z;
      authors_rows_.index_copy_(0, where, moved / moved.norm(2, {1}, true));
    });
  }

  bool stream_batch(bool with_authors) {
    double total = 0;
    for (std::int64_t update = 0; update < config_.updates; ++update) {
      history_.update();
      const Slots slots = draw();
      const at::Tensor features = history_.features(slots);
      const auto ages = ages_of(slots);
      const double ms =
          meter_.milliseconds([&] { index_->blend(slots, ages, features, kMomentum); });
      steps_.push_back(ms);
      total += ms;
      if (with_authors) authors_steps_.push_back(track_as_authors(slots, features));
    }
    authors_rows_ = at::Tensor();
    total += arrive(free_, kFramesPerClip);
    live_.insert(live_.end(), free_.begin(), free_.end());
    Slots theirs;
    scratch_ = std::max(scratch_, meter_.take_scratch());
    if (with_authors) {
      authors_takes_.push_back(meter_.milliseconds(
          [&] { theirs = authors_removals(index_->rows(), live_, ages_, config_.batch); }));
      authors_scratch_ = std::max(authors_scratch_, meter_.take_scratch());
    }
    std::vector<Removal> removed;
    const double ms =
        meter_.milliseconds([&] { removed = index_->take_most_redundant(config_.batch); });
    Slots taken;
    for (const Removal& removal : removed) taken.push_back(removal.slot);
    takes_.push_back(ms);
    totals_.push_back(total + ms);
    scratch_ = std::max(scratch_, meter_.take_scratch());
    const bool same =
        !with_authors || theirs == taken || by_definition(index_->rows(), live_, ages_, taken);
    std::vector<bool> gone(ages_.size(), false);
    for (const std::int64_t slot : taken) gone[slot] = true;
    std::erase_if(live_, [&](std::int64_t slot) { return gone[slot]; });
    free_ = taken;
    return same;
  }

  MinredBenchConfig config_;
  Meter meter_;
  MinredBenchHistory history_;
  Random random_;
  std::unique_ptr<NearestIndex> index_;
  std::vector<std::uint64_t> ages_;
  std::uint64_t arrivals_ = 0;
  Slots live_, free_;
  at::Tensor authors_rows_;
  std::vector<double> totals_, steps_, takes_, authors_steps_, authors_takes_;
  std::uint64_t held_ = 0, predicted_ = 0, scratch_ = 0, authors_scratch_ = 0;
};

}  // namespace

MinredBenchResult bench_minred(const MinredBenchConfig& config) {
  if (config.batch < 1 || config.capacity < config.batch) {
    throw Error(cat("capacity ", config.capacity, " with batches of ", config.batch,
                    "; a batch of at least 1 and a capacity of at least a batch"));
  }
  if (config.updates < 1 || config.batches < 1 || config.warm_batches < 0) {
    throw Error("at least 1 update, 1 measured batch and 0 warm-up batches");
  }
  return Bench(config).run();
}

}  // namespace riffle

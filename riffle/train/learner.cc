#include "riffle/train/learner.h"

#include <algorithm>
#include <cmath>
#include <thread>
#include <utility>
#include <vector>

#include <torch/types.h>

#include "riffle/base/checksum.h"
#include "riffle/base/clock.h"
#include "riffle/base/error.h"
#include "riffle/base/text.h"
#include "riffle/model/state.h"
#include "riffle/model/vision_transformer.h"
#include "riffle/stream/pairs.h"
#include "riffle/stream/shapes/junk.h"
#include "riffle/train/batch_part.h"
#include "riffle/train/learner_state.h"
#include "riffle/train/replay.h"
#include "riffle/train/schedule.h"
#include "riffle/train/updater.h"

namespace riffle {
namespace {

// How often all ranks compare their weights and buffers.
constexpr std::int64_t kUpdatesBetweenChecks = 500;

std::uint64_t digest(const NamedTensors& tensors) {
  Checksum sum;
  for (const auto& [name, tensor] : tensors) {
    const at::Tensor values = tensor.cpu().contiguous();
    sum.add(std::as_bytes(std::span(static_cast<const char*>(values.const_data_ptr()),
                                    static_cast<std::size_t>(values.nbytes()))));
  }
  return sum.value();
}

TrainConfig replay_config(const LearnerConfig& config) {
  TrainConfig train = config.train;
  train.updates = config.updates_per_batch();
  train.drain = train.drain && !config.buffer.is_none();
  return train;
}

UpdaterConfig updater_config(const LearnerConfig& config) {
  return {.model = config.model,
          .augment = config.augment,
          .train = config.train,
          .picture_size = config.stored_size(),
          .seed = config.seed,
          .device = config.device};
}

void require_divisible(const LearnerConfig& config, const Ranks& ranks) {
  for (const auto& [key, samples] :
       {std::pair{"train.batch", config.train.batch},
        std::pair{"train.stream_batch", config.train.samples_per_stream_batch()}}) {
    if (samples % ranks.size() == 0) continue;
    throw Error(cat(key, '=', samples, " cannot be divided by ", ranks.size(), " ranks"));
  }
  const std::int64_t fresh = config.train.fresh_samples();
  if (config.model.align_weight > 0 && fresh % ranks.size() != 0) {
    throw Error(cat("align.weight leaves out fresh samples, and train.fresh=", config.train.fresh,
                    " of a batch are ", fresh, ", which cannot be divided by ", ranks.size(),
                    " ranks; give another train.fresh"));
  }
}

// Batch norm needs two samples of each view, also in the head of alignment, which does not see the
// fresh ones.
void require_batch_statistics(const LearnerConfig& config, const Ranks& ranks) {
  const TrainConfig& train = config.train;
  const std::int64_t left_out = config.model.align_weight > 0 ? train.fresh_samples() : 0;
  const bool each_alone = !ranks.alone() && !config.model.sync_batch_norm;
  if ((train.batch - left_out) / (each_alone ? ranks.size() : 1) >= 2) return;
  std::string what = cat("train.batch=", train.batch), remedy = "a larger train.batch";
  if (left_out > 0) {
    what += cat(" without what align.weight leaves out, train.fresh=", train.fresh, ',');
    remedy += " or a smaller train.fresh";
  }
  if (each_alone) remedy += " or model.sync_batch_norm=true";
  throw Error(cat(what, " is one sample", each_alone ? " a rank" : "",
                  ", and batch norm needs two; give ", remedy));
}

// Puts the samples of a draw into the order of the ranks that they are for.
void order_by_rank(Draw& draw, const TrainConfig& train, int ranks) {
  const Draw drawn = draw;
  std::size_t to = 0;
  for (int rank = 0; rank < ranks; ++rank) {
    const BatchPart part(train, rank, ranks);
    for (std::int64_t i = 0; i < part.samples; ++i, ++to) {
      const auto from = static_cast<std::size_t>(part.places.of(i));
      draw.slots[to] = drawn.slots[from];
      draw.arrivals[to] = drawn.arrivals[from];
    }
  }
}

}  // namespace

BufferConfig LearnerConfig::buffer_config() const {
  BufferConfig config = buffer;
  if (config.is_none()) config.capacity = std::to_string(train.batch);
  config.pairs = augment.temporal > 0;
  return config;
}

struct Learner::State {
  State(const LearnerConfig& learner_config, Stream& source, const Sharing& sharing)
      : config(learner_config),
        gpu_ranks(sharing.ranks.alone() ? nullptr
                                        : ranks_on(open_device(config.device), sharing.ranks)),
        ranks(gpu_ranks ? *gpu_ranks : sharing.ranks),
        updater(make_updater(updater_config(config), nullptr, ranks)),
        buffer(config.buffer_config(), config.train.samples_per_stream_batch(),
               static_cast<int>(config.stored_size()), updater->objective().feature_dim(),
               config.seed, open_device(config.device), ranks),
        schedule(config.train),
        replay(replay_config(config), config.seed, source, buffer,
               [this](const Pictures& pictures) {
                 return features_on_arrival() ? ranks.gather(updater->arrival_features(pictures))
                                              : torch::Tensor();
               },
               config.augment.temporal, {ranks, sharing.own_streams}) {}

  const LearnerConfig config;
  const std::unique_ptr<Ranks> gpu_ranks;  // null where ranks have no GPUs to exchange between
  Ranks& ranks;
  std::unique_ptr<Updater> updater;
  ReplayBuffer buffer;
  Schedule schedule;

  LearnerTimes times;
  // Last, so that its thread ends before anything else is destroyed.
  Replay replay;

  bool features_on_arrival() const {
    return policy_kind(config.buffer.policy).wants_features &&
           config.buffer.features == FeatureTime::arrival &&
           replay.draws() >= config.train.warm_features;
  }

  double same_clip_pairs(std::span<const Slot> slots) const {
    std::vector<std::int64_t> clips;
    clips.reserve(slots.size());
    for (const Slot slot : slots) clips.push_back(buffer.info(slot).clip);
    return same_clip_share(clips);
  }

  // Ranks whose weights differ, on a faulty machine or on one of another kind, never agree again.
  void require_agreement() {
    if (ranks.alone()) return;
    constexpr const char* kAdvice = "all must run the same riffle on the same kind of machine";
    ranks.require_same(digest(save_state(updater->objective())), "the weights", kAdvice);
    ranks.require_same(digest({{"live", integers_tensor(buffer.live())}}), "the buffer's samples",
                       kAdvice);
  }

  double junk_share(std::span<const Slot> slots) const {
    const auto junk = std::ranges::count_if(
        slots, [this](Slot slot) { return buffer.info(slot).label == kJunkLabel; });
    return static_cast<double>(junk) / static_cast<double>(std::max<std::size_t>(1, slots.size()));
  }
};

Learner::Learner(const LearnerConfig& config, Stream& stream, const Sharing& sharing) {
  config.train.validate();
  config.buffer.validate();
  if (config.train.clock == ClockKind::live && config.buffer.is_none()) {
    throw Error("train.clock=live needs a buffer: without one each update waits for its batch");
  }
  if (config.buffer.is_none() && config.train.fresh_samples() > 0) {
    throw Error("train.fresh needs a buffer: without one all samples are fresh");
  }
  if (config.buffer.is_none() && config.train.samples_per_stream_batch() != config.train.batch) {
    throw Error("train.stream_batch needs a buffer: without one a stream batch is trained on");
  }
  if (is_transformer(config.model.arch)) {
    const std::int64_t patch = transformer_shape(config.model).patch;
    if (config.augment.size % patch != 0) {
      throw Error(cat("views of ", config.augment.size, " px for patches of ", patch,
                      " px; give a --size that is a multiple of it, or another --stem"));
    }
  }
  require_divisible(config, sharing.ranks);
  require_batch_statistics(config, sharing.ranks);
  at::set_num_threads(config.train.threads > 0
                          ? static_cast<int>(config.train.threads)
                          : static_cast<int>(std::thread::hardware_concurrency()));
  state_ = std::make_unique<State>(config, stream, sharing);
}

Learner::~Learner() = default;

template <typename Call>
auto Learner::explain_failure(const Call& call) {
  try {
    return call();
  } catch (const StreamError&) {
    throw;
  } catch (const Error&) {
    // Broken features come from a broken network, which is the better message.
    outcome();
    throw;
  }
}

bool Learner::fill() {
  return explain_failure([this] { return state_->replay.fill(); });
}

std::optional<UpdateReport> Learner::advance(bool measured) {
  State& s = *state_;
  const std::int64_t end = s.config.train.max_updates;
  if (end > 0 && s.replay.draws() >= end) return std::nullopt;
  const std::int64_t step = s.replay.draws();
  auto draw = explain_failure([&s] { return s.replay.next(); });
  if (!draw) return std::nullopt;
  if (!s.ranks.alone()) order_by_rank(*draw, s.config.train, s.ranks.size());

  const Ranks::Working working(s.ranks);
  auto time = Clock::now();
  const auto lap = [&time](double& seconds) {
    seconds += seconds_since(std::exchange(time, Clock::now()));
  };
  const Pictures pictures = s.buffer.pictures(draw->slots);
  lap(s.times.drawing);
  UpdateReport report;
  report.lr = s.schedule.lr(step);
  const auto features = s.updater->update(pictures, step, report.lr, s.schedule.predictor_lr(step));
  lap(s.times.updating);
  report.update = s.replay.draws();
  report.samples_seen = s.replay.samples_seen();
  report.same_clip_pairs = s.same_clip_pairs(draw->slots);
  report.junk = s.junk_share(draw->slots);
  // On the CPU the loss is known by now, and broken features must not enter the buffer.
  const bool known = s.config.device == "cpu";
  if (known) measure(report);
  s.buffer.track(*draw, s.ranks.gather(features));
  if (step % kUpdatesBetweenChecks == 0) s.require_agreement();
  lap(s.times.tracking);
  if (measured && !known) measure(report);
  lap(s.times.measuring);
  return report;
}

void Learner::measure(UpdateReport& report) {
  const auto last = outcome();
  report.loss = last.loss;
  report.std = last.std;
}

Updater::Outcome Learner::outcome() {
  const auto last = state_->updater->outcome();
  if (std::isfinite(last.loss)) return last;
  throw Error(cat("the loss of update ", last.step + 1, " is ", last.loss,
                  "; training cannot continue. A lower --lr may help"),
              ErrorKind::failure);
}

void Learner::stop() { state_->replay.stop(); }
bool Learner::stopped() const { return state_->replay.stopped(); }

Ranks& Learner::ranks() const { return state_->ranks; }
Objective& Learner::objective() { return state_->updater->objective(); }
ReplayBuffer& Learner::buffer() { return state_->buffer; }
const ReplayBuffer& Learner::buffer() const { return state_->buffer; }
std::int64_t Learner::update() const { return state_->replay.draws(); }
std::int64_t Learner::batches_taken() const { return state_->replay.batches_taken(); }
std::int64_t Learner::samples_seen() const { return state_->replay.samples_seen(); }
double Learner::junk_in_buffer() const { return state_->junk_share(state_->buffer.live()); }
const std::map<std::string, std::int64_t>& Learner::skipped() const {
  return state_->replay.skipped();
}
std::optional<std::int64_t> Learner::stream_period() const { return state_->replay.period(); }
Intake::Waits Learner::waits() const { return state_->replay.waits(); }

Intake::Arrivals Learner::arrivals() const { return state_->replay.arrivals(); }

LearnerTimes Learner::times() const {
  LearnerTimes times = state_->times;
  times.waiting = state_->replay.waits().learner_s;
  times.taking = state_->replay.taking();
  times.drawing += state_->replay.drawing();
  return times;
}

NamedTensors Learner::save() {
  State& s = *state_;
  outcome();
  LearnerState state;
  state.network = save_state(objective());
  state.momenta = s.updater->momenta();
  s.replay.save(state);
  return state.tensors();
}

void Learner::restore(const NamedTensors& tensors) {
  State& s = *state_;
  const LearnerState state = LearnerState::read(tensors);
  load_state(objective(), state.network);
  s.updater->load_momenta(state.momenta);
  s.replay.restore(state);
}

}  // namespace riffle

#include "riffle/train/learner.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <thread>
#include <utility>
#include <vector>

#include <torch/types.h>

#include "riffle/base/clock.h"
#include "riffle/base/error.h"
#include "riffle/base/random.h"
#include "riffle/base/text.h"
#include "riffle/model/state.h"
#include "riffle/stream/pairs.h"
#include "riffle/stream/shapes/junk.h"
#include "riffle/train/learner_state.h"
#include "riffle/train/schedule.h"
#include "riffle/train/updater.h"

namespace riffle {
namespace {

// Stream batches read ahead. More would only help a source whose batches take unequal time.
constexpr std::size_t kAhead = 3;

BufferConfig buffer_config(const LearnerConfig& config) {
  BufferConfig buffer = config.buffer;
  if (buffer.is_none()) buffer.capacity = std::to_string(config.train.batch);
  return buffer;
}

UpdaterConfig updater_config(const LearnerConfig& config) {
  return {.model = config.model,
          .augment = config.augment,
          .train = config.train,
          .picture_size = config.stored_size(),
          .seed = config.seed,
          .device = config.device};
}

}  // namespace

struct Learner::State {
  State(const LearnerConfig& learner_config, Stream& source)
      : config(learner_config),
        stream(source),
        updater(make_updater(updater_config(config))),
        buffer(buffer_config(config), config.train.samples_per_stream_batch(),
               static_cast<int>(config.stored_size()), updater->objective().feature_dim(),
               config.seed, open_device(config.device)),
        schedule(config.train),
        position(source.position()),
        intake(source, config.train.samples_per_stream_batch(),
               static_cast<int>(config.stored_size()), kAhead, buffer.picture_device()) {
    const TrainConfig& train = config.train;
    const std::int64_t fresh = train.fresh_samples();
    if (fresh > 0) buffer.hold_newest();
    const std::int64_t replayed = train.batch - fresh;
    const std::int64_t kept = buffer.capacity() - (fresh > 0 ? buffer.batch() : 0);
    if (kept < replayed) {
      throw Error(cat("a buffer of ", buffer.capacity(), " is too small to draw ", replayed,
                      " samples from", fresh > 0 ? " beside those that just came" : "",
                      "; give at least --capacity ", buffer.capacity() + replayed - kept));
    }
  }

  const LearnerConfig config;
  Stream& stream;
  std::unique_ptr<Updater> updater;
  ReplayBuffer buffer;
  Schedule schedule;

  std::int64_t update = 0;
  std::int64_t updates_due = 0;  // left on the last stream batch
  std::int64_t batches_taken = 0;
  std::int64_t samples_seen = 0;
  std::string position;  // of the stream after the last batch taken
  std::map<std::string, std::int64_t> skipped;
  // By the stream's own count, until then.
  std::map<std::string, std::int64_t> skipped_before;
  std::atomic<bool> stopped = false;
  LearnerTimes times;
  // Last, so that its thread ends before anything else is destroyed.
  Intake intake;

  bool features_on_arrival() const {
    return policy_kind(config.buffer.policy).wants_features &&
           config.buffer.features == FeatureTime::arrival && update >= config.train.warm_features;
  }

  Draw draw(Random& random) {
    const std::int64_t fresh = config.train.fresh_samples();
    return fresh > 0 ? buffer.sample_with_fresh(config.train.batch, fresh, random)
                     : buffer.sample(config.train.batch, random);
  }

  double same_clip_pairs(std::span<const Slot> slots) const {
    std::vector<std::int64_t> clips;
    clips.reserve(slots.size());
    for (const Slot slot : slots) clips.push_back(buffer.info(slot).clip);
    return same_clip_share(clips);
  }

  double junk_share(std::span<const Slot> slots) const {
    const auto junk = std::ranges::count_if(
        slots, [this](Slot slot) { return buffer.info(slot).label == kJunkLabel; });
    return static_cast<double>(junk) / static_cast<double>(std::max<std::size_t>(1, slots.size()));
  }
};

Learner::Learner(const LearnerConfig& config, Stream& stream) {
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
  at::set_num_threads(config.train.threads > 0
                          ? static_cast<int>(config.train.threads)
                          : static_cast<int>(std::thread::hardware_concurrency()));
  state_ = std::make_unique<State>(config, stream);
}

Learner::~Learner() = default;

void Learner::insert(StreamBatch batch) {
  State& s = *state_;
  const auto start = Clock::now();
  try {
    s.buffer.insert(batch.samples, batch.pictures, [&](const Pictures& pictures) {
      return s.features_on_arrival() ? s.updater->arrival_features(pictures) : torch::Tensor();
    });
  } catch (const Error&) {
    // Broken features come from a broken network, which is the better message.
    outcome();
    throw;
  }
  s.samples_seen += s.config.train.samples_per_stream_batch();
  ++s.batches_taken;
  s.position = std::move(batch.position);
  for (const auto& [reason, count] : batch.skipped) {
    const auto before = s.skipped_before.find(reason);
    const std::int64_t counted = before == s.skipped_before.end() ? 0 : before->second;
    s.skipped[reason] += count - counted;
  }
  s.skipped_before = std::move(batch.skipped);
  if (s.buffer.full()) s.updates_due = s.config.updates_per_batch();
  s.times.taking += seconds_since(start);
}

bool Learner::take_stream_batch() {
  auto batch = state_->intake.take();
  if (batch) insert(std::move(*batch));
  return batch.has_value();
}

bool Learner::fill() { return !state_->buffer.full() && take_stream_batch(); }

void Learner::take_due() {
  State& s = *state_;
  while (fill()) {
  }
  if (!s.buffer.full()) return;
  const bool drains = s.config.train.drain && !s.config.buffer.is_none();
  if (s.config.train.clock == ClockKind::lockstep) {
    // Without a batch the stream has ended, or was stopped.
    if (s.updates_due == 0 && !take_stream_batch() && drains && !s.stopped) s.updates_due = 1;
    return;
  }
  auto arrived = s.intake.take_arrived();
  s.updates_due = arrived.empty() && s.intake.ended() && !drains ? 0 : 1;
  for (auto& batch : arrived) insert(std::move(batch));
}

std::optional<UpdateReport> Learner::advance(bool measured) {
  State& s = *state_;
  if (s.stopped) return std::nullopt;
  if (s.config.train.max_updates > 0 && s.update >= s.config.train.max_updates) return std::nullopt;
  take_due();
  if (!s.buffer.full()) {
    if (s.stopped) return std::nullopt;
    throw Error(cat("the stream ended after ", s.samples_seen, " samples, before the buffer of ",
                    s.buffer.capacity(),
                    " was full; give a smaller --capacity or a longer stream"));
  }
  // Otherwise the update is made even when stop() came meanwhile: what entered the buffer belongs
  // to the state after it.
  if (s.updates_due == 0) return std::nullopt;  // the stream has ended

  auto time = Clock::now();
  const auto lap = [&time](double& seconds) {
    seconds += seconds_since(std::exchange(time, Clock::now()));
  };
  Random random(s.config.seed, Purpose("draw"), static_cast<std::uint64_t>(s.update));
  const Draw draw = s.draw(random);
  const Pictures pictures = s.buffer.pictures(draw.slots);
  lap(s.times.drawing);
  UpdateReport report;
  report.lr = s.schedule.lr(s.update);
  const auto features =
      s.updater->update(pictures, s.update, report.lr, s.schedule.predictor_lr(s.update));
  lap(s.times.updating);
  ++s.update;
  --s.updates_due;
  report.update = s.update;
  report.samples_seen = s.samples_seen;
  report.same_clip_pairs = s.same_clip_pairs(draw.slots);
  report.junk = s.junk_share(draw.slots);
  // On the CPU the loss is known by now, and broken features must not enter the buffer.
  const bool known = s.config.device == "cpu";
  if (known) measure(report);
  s.buffer.track(draw, features);
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

void Learner::stop() {
  state_->stopped = true;
  state_->intake.stop();
}

Objective& Learner::objective() { return state_->updater->objective(); }
ReplayBuffer& Learner::buffer() { return state_->buffer; }
const ReplayBuffer& Learner::buffer() const { return state_->buffer; }
std::int64_t Learner::update() const { return state_->update; }
std::int64_t Learner::batches_taken() const { return state_->batches_taken; }
std::int64_t Learner::samples_seen() const { return state_->samples_seen; }
double Learner::junk_in_buffer() const { return state_->junk_share(state_->buffer.live()); }
const std::map<std::string, std::int64_t>& Learner::skipped() const { return state_->skipped; }
Intake::Waits Learner::waits() const { return state_->intake.waits(); }

LearnerTimes Learner::times() const {
  LearnerTimes times = state_->times;
  times.waiting = state_->intake.waits().learner_s;
  return times;
}

NamedTensors Learner::save() {
  State& s = *state_;
  outcome();
  return LearnerState{.network = save_state(objective()),
                      .momenta = s.updater->momenta(),
                      .buffer = s.buffer.save(),
                      .update = s.update,
                      .updates_due = s.updates_due,
                      .batches_taken = s.batches_taken,
                      .samples_seen = s.samples_seen,
                      .position = s.position,
                      .skipped = s.skipped}
      .tensors();
}

void Learner::restore(const NamedTensors& tensors) {
  State& s = *state_;
  LearnerState state = LearnerState::read(tensors);
  load_state(objective(), state.network);
  s.updater->load_momenta(state.momenta);
  s.buffer.restore(state.buffer);
  s.update = state.update;
  s.updates_due = state.updates_due;
  s.batches_taken = state.batches_taken;
  s.samples_seen = state.samples_seen;
  s.skipped = std::move(state.skipped);
  s.position = std::move(state.position);
  s.stream.seek(s.position);
  s.skipped_before = s.stream.skipped();
}

}  // namespace riffle

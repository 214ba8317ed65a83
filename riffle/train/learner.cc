#include "riffle/train/learner.h"

#include <cmath>
#include <cstring>
#include <numeric>
#include <thread>
#include <vector>

#include <torch/torch.h>

#include "riffle/base/error.h"
#include "riffle/base/random.h"
#include "riffle/base/text.h"
#include "riffle/image/resize.h"
#include "riffle/stream/pairs.h"
#include "riffle/train/schedule.h"
#include "riffle/train/updater.h"

namespace riffle {
namespace {

// The pictures of a batch side by side: [batch, side, side, 3].
Pictures stack_pictures(const std::vector<Sample>& batch, std::int64_t side) {
  auto stacked =
      torch::empty({static_cast<std::int64_t>(batch.size()), side, side, 3}, torch::kUInt8);
  auto* out = stacked.data_ptr<std::uint8_t>();
  for (const auto& sample : batch) {
    std::memcpy(out, sample.picture.rgb.data(), sample.picture.rgb.size());
    out += sample.picture.rgb.size();
  }
  std::vector<std::int64_t> places(batch.size());
  std::iota(places.begin(), places.end(), 0);
  return {stacked, places};
}

BufferConfig buffer_config(const LearnerConfig& config) {
  BufferConfig buffer = config.buffer;
  if (buffer.policy == PolicyKind::none) buffer.capacity = std::to_string(config.train.batch);
  return buffer;
}

UpdaterConfig updater_config(const LearnerConfig& config) {
  return {.model = config.model,
          .augment = config.augment,
          .train = config.train,
          .seed = config.seed,
          .device = config.device};
}

}  // namespace

struct Learner::State {
  State(const LearnerConfig& learner_config, Stream& source)
      : config(learner_config),
        stream(source),
        updater(make_updater(updater_config(config))),
        buffer(buffer_config(config), config.train.batch, static_cast<int>(config.stored_size()),
               updater->objective().feature_dim(), config.seed, open_device(config.device)),
        schedule(config.train) {}

  const LearnerConfig config;
  Stream& stream;
  std::unique_ptr<Updater> updater;
  ReplayBuffer buffer;
  Schedule schedule;

  std::int64_t update = 0;
  std::int64_t updates_due = 0;  // still to be made on the last stream batch
  std::int64_t batches_taken = 0;
  std::int64_t samples_seen = 0;

  bool features_on_arrival() const {
    return config.buffer.policy == PolicyKind::minred &&
           config.buffer.features == FeatureTime::arrival && update >= config.train.warm_features;
  }

  double same_clip_pairs(std::span<const Slot> slots) const {
    std::vector<std::int64_t> clips;
    clips.reserve(slots.size());
    for (const Slot slot : slots) clips.push_back(buffer.info(slot).clip);
    return same_clip_share(clips);
  }
};

Learner::Learner(const LearnerConfig& config, Stream& stream) {
  config.train.validate();
  config.buffer.validate();
  at::set_num_threads(config.train.threads > 0
                          ? static_cast<int>(config.train.threads)
                          : static_cast<int>(std::thread::hardware_concurrency()));
  state_ = std::make_unique<State>(config, stream);
}

Learner::~Learner() = default;

bool Learner::take_stream_batch() {
  State& s = *state_;
  std::vector<Sample> batch;
  batch.reserve(static_cast<std::size_t>(s.config.train.batch));
  while (static_cast<std::int64_t>(batch.size()) < s.config.train.batch) {
    auto sample = s.stream.next();
    if (!sample) return false;  // less than a batch is left: the end
    sample->picture =
        fit_square(std::move(sample->picture), static_cast<int>(s.config.stored_size()));
    batch.push_back(std::move(*sample));
  }
  torch::Tensor features;
  if (s.features_on_arrival()) {
    features =
        s.updater->arrival_features(stack_pictures(batch, s.config.stored_size()), s.batches_taken);
  }
  s.buffer.insert(batch, features);
  s.samples_seen += s.config.train.batch;
  ++s.batches_taken;
  return true;
}

std::optional<UpdateReport> Learner::advance() {
  State& s = *state_;
  if (s.update >= s.config.train.max_updates) return std::nullopt;
  if (s.updates_due == 0) {
    do {
      if (take_stream_batch()) continue;
      if (s.update > 0) return std::nullopt;
      throw Error(cat("the stream ended after ", s.samples_seen, " samples, before the buffer of ",
                      s.buffer.capacity(),
                      " was full; give a smaller --capacity or a longer stream"));
    } while (!s.buffer.full());
    s.updates_due = s.config.updates_per_batch();
  }

  Random random(s.config.seed, Purpose("draw"), static_cast<std::uint64_t>(s.update));
  const Draw draw = s.buffer.sample(s.config.train.batch, random);
  UpdateReport report;
  report.lr = s.schedule.lr(s.update);
  const auto result = s.updater->update(s.buffer.pictures(draw.slots), s.update, report.lr,
                                        s.schedule.predictor_lr(s.update));
  if (!std::isfinite(result.loss)) {
    throw Error(cat("the loss of update ", s.update + 1, " is ", result.loss,
                    "; training cannot go on. A lower --lr may help"),
                ErrorKind::failure);
  }
  s.buffer.track(draw, result.features);

  ++s.update;
  --s.updates_due;
  report.update = s.update;
  report.samples_seen = s.samples_seen;
  report.loss = result.loss;
  report.std = result.std;
  report.same_clip_pairs = s.same_clip_pairs(draw.slots);
  return report;
}

Objective& Learner::objective() { return state_->updater->objective(); }
const ReplayBuffer& Learner::buffer() const { return state_->buffer; }
std::int64_t Learner::samples_seen() const { return state_->samples_seen; }

LearnerWeights Learner::weights() { return {save_state(objective()), state_->updater->momenta()}; }

}  // namespace riffle

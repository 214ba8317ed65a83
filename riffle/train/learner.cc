#include "riffle/train/learner.h"

#include <cmath>
#include <cstring>
#include <numeric>
#include <thread>
#include <vector>

#include <torch/torch.h>

#include "riffle/augment/two_views.h"
#include "riffle/base/error.h"
#include "riffle/base/log.h"
#include "riffle/base/random.h"
#include "riffle/base/text.h"
#include "riffle/base/thread_pool.h"
#include "riffle/image/resize.h"
#include "riffle/stream/pairs.h"
#include "riffle/train/schedule.h"
#include "riffle/train/sgd.h"

namespace riffle {
namespace {

torch::Device open_device(const std::string& name) {
  if (name == "cpu") return torch::kCPU;
  if (name == "cuda") {
    if (torch::cuda::is_available()) return torch::kCUDA;
    throw Error("device cuda: this build or machine has no CUDA device; use cpu");
  }
  throw Error(unknown_name("device", name, std::vector<std::string>{"cpu", "cuda"}));
}

// The pictures of a batch side by side: [batch, side, side, 3].
torch::Tensor stack_pictures(const std::vector<Sample>& batch, std::int64_t side) {
  auto stacked =
      torch::empty({static_cast<std::int64_t>(batch.size()), side, side, 3}, torch::kUInt8);
  auto* out = stacked.data_ptr<std::uint8_t>();
  for (const auto& sample : batch) {
    std::memcpy(out, sample.picture.rgb.data(), sample.picture.rgb.size());
    out += sample.picture.rgb.size();
  }
  return stacked;
}

std::shared_ptr<Objective> make_objective(const LearnerConfig& config, torch::Device device) {
  auto objective = make_simsiam(config.model, config.seed);
  objective->to(device);
  return objective;
}

BufferConfig buffer_config(const LearnerConfig& config) {
  BufferConfig buffer = config.buffer;
  if (buffer.policy == PolicyKind::none) buffer.capacity = std::to_string(config.train.batch);
  return buffer;
}

}  // namespace

struct Learner::State {
  State(const LearnerConfig& learner_config, Stream& source)
      : config(learner_config),
        stream(source),
        device(open_device(config.device)),
        pool(static_cast<int>(config.train.threads)),
        training_views(config.augment, config.seed, pool),
        arrival_views(config.augment, ~config.seed, pool),
        objective(make_objective(config, device)),
        buffer(buffer_config(config), config.train.batch, static_cast<int>(config.stored_size()),
               objective->feature_dim(), config.seed, device),
        schedule(config.train),
        optimizer(*objective, config.train) {}

  const LearnerConfig config;
  Stream& stream;
  torch::Device device;
  ThreadPool pool;
  TwoViews training_views;
  TwoViews arrival_views;
  std::shared_ptr<Objective> objective;
  ReplayBuffer buffer;
  Schedule schedule;
  Sgd optimizer;

  std::int64_t update = 0;
  std::int64_t updates_due = 0;  // still to be made on the last stream batch
  std::int64_t batches_taken = 0;
  std::int64_t samples_seen = 0;

  bool features_on_arrival() const {
    return config.buffer.policy == PolicyKind::minred &&
           config.buffer.features == FeatureTime::arrival && update >= config.train.warm_features;
  }

  // Pictures of the slots where the views are made: in host memory.
  Pictures host_pictures(std::span<const Slot> slots) const {
    Pictures pictures = buffer.pictures(slots);
    if (pictures.tensor.is_cpu()) return pictures;
    const auto rows = torch::tensor(at::ArrayRef<std::int64_t>(pictures.indices), torch::kInt64);
    pictures.tensor = pictures.tensor.index_select(0, rows.to(pictures.tensor.device())).cpu();
    std::iota(pictures.indices.begin(), pictures.indices.end(), 0);
    return pictures;
  }

  // The features of a batch that just arrived, before it enters the buffer.
  torch::Tensor arrival_features(const std::vector<Sample>& batch) {
    std::vector<std::int64_t> places(batch.size());
    std::iota(places.begin(), places.end(), 0);
    const auto [view1, view2] = arrival_views(stack_pictures(batch, config.stored_size()), places,
                                              static_cast<std::uint64_t>(batches_taken));
    return objective->features(view1.to(device), view2.to(device));
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
  s.buffer.insert(batch, s.features_on_arrival() ? s.arrival_features(batch) : torch::Tensor());
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

  const auto step = static_cast<std::uint64_t>(s.update);
  Random random(s.config.seed, Purpose("draw"), step);
  const Draw draw = s.buffer.sample(s.config.train.batch, random);
  const Pictures pictures = s.host_pictures(draw.slots);
  const auto [view1, view2] = s.training_views(pictures.tensor, pictures.indices, step);
  const auto output = s.objective->forward(view1.to(s.device), view2.to(s.device));

  UpdateReport report;
  report.loss = output.loss.item<double>();
  if (!std::isfinite(report.loss)) {
    throw Error(cat("the loss of update ", s.update + 1, " is ", report.loss,
                    "; training cannot go on. A lower --lr may help"),
                ErrorKind::failure);
  }
  output.loss.backward();
  report.lr = s.schedule.lr(s.update);
  s.optimizer.step(report.lr, s.schedule.predictor_lr(s.update));
  s.buffer.track(draw, output.features);

  ++s.update;
  --s.updates_due;
  report.update = s.update;
  report.samples_seen = s.samples_seen;
  report.std = output.std.item<double>();
  report.same_clip_pairs = s.same_clip_pairs(draw.slots);
  return report;
}

Objective& Learner::objective() { return *state_->objective; }
const ReplayBuffer& Learner::buffer() const { return state_->buffer; }
std::int64_t Learner::samples_seen() const { return state_->samples_seen; }

LearnerWeights Learner::weights() {
  return {save_state(*state_->objective), state_->optimizer.state()};
}

}  // namespace riffle

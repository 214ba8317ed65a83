#include "riffle/train/updater_gpu.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <functional>
#include <vector>

#include <ATen/Context.h>
#include <ATen/cuda/CUDAGraph.h>
#include <c10/core/Event.h>
#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDAFunctions.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>
#include <torch/types.h>
#include <torch/utils.h>

#include "riffle/augment/two_views_gpu.h"
#include "riffle/base/error.h"
#include "riffle/base/thread_pool.h"
#include "riffle/train/batch_part.h"
#include "riffle/train/gradient_exchange_gpu.h"
#include "riffle/train/sgd.h"

namespace riffle {
namespace {

torch::ScalarType type_of(const UpdaterConfig& config) {
  return config.train.precision == Precision::float32 ? torch::kFloat32 : torch::kBFloat16;
}

// The layout that the first convolution is quickest on.
ViewLayout layout_of(const UpdaterConfig& config) {
  if (type_of(config) == torch::kFloat32) return ViewLayout::plain;
  if (is_transformer(config.model.arch)) return ViewLayout::plain;
  if (config.model.stem != Stem::standard) return ViewLayout::padded;
  return config.augment.size % 2 == 0 ? ViewLayout::folded : ViewLayout::plain;
}

std::unique_ptr<TwoViewsGpu> make_views(const UpdaterConfig& config, const AugmentConfig& augment,
                                        const BatchPart& part, ThreadPool& pool) {
  return std::make_unique<TwoViewsGpu>(augment, config.seed, pool, part.samples,
                                       config.picture_size, layout_of(config), type_of(config),
                                       part.places);
}

struct Recording {
  at::cuda::CUDAGraph graph;
  bool done = false;
};

// Runs `work` a few times, so that the libraries choose their algorithms.
void try_out(const std::function<void()>& work) {
  at::globalContext().setBenchmarkCuDNN(true);
  c10::cuda::device_synchronize();
  const c10::cuda::CUDAStreamGuard guard(c10::cuda::getStreamFromPool());
  constexpr int kTrials = 3;
  for (int i = 0; i < kTrials; ++i) work();
  c10::cuda::device_synchronize();
}

// `before`: an earlier recording, whose memory may serve here too: what one leaves is used before
// the other runs again.
void record(Recording& recording, Recording* before, const std::function<void()>& work) {
  c10::cuda::CUDACachingAllocator::emptyCache();
  {
    const c10::cuda::CUDAStreamGuard guard(c10::cuda::getStreamFromPool());
    const auto pool = before != nullptr && before->done ? before->graph.pool() : c10::MempoolId_t{};
    // Other threads may copy pictures meanwhile.
    recording.graph.capture_begin(pool, cudaStreamCaptureModeThreadLocal);
    work();
    recording.graph.capture_end();
  }
  c10::cuda::device_synchronize();
  recording.done = true;
}

// What the host passes to an update and gets from it, in memory that the device copies from and to.
struct Turn {
  torch::Tensor rows;
  torch::Tensor staging;  // pictures from host memory; allocated when first needed
  torch::Tensor rates;
  torch::Tensor report;
  c10::Event done{c10::kCUDA};
  // Of the update begun and not yet finished; -1: none.
  std::int64_t step = -1;
};

}  // namespace

struct UpdaterGpu::State {
  State(const UpdaterConfig& updater_config, std::shared_ptr<Objective> given_objective,
        Ranks& given_ranks)
      : config(updater_config),
        ranks(given_ranks),
        part(config.train, ranks.rank(), ranks.size()),
        pool(static_cast<int>(config.train.threads)),
        objective(std::move(given_objective)),
        optimizer(*objective, objective->predictor_parameters(), config.train),
        views(make_views(config, config.augment, part, pool)) {
    if (ranks.on_gpu()) exchange = std::make_unique<GradientExchangeGpu>(*objective, ranks);
    const std::int64_t count = part.samples * (config.augment.temporal > 0 ? kViews : 1);
    pictures = torch::empty({count, config.picture_size, config.picture_size, 3},
                            torch::TensorOptions().dtype(torch::kByte).device(torch::kCUDA));
    rows = torch::zeros({count}, torch::dtype(torch::kInt64).device(torch::kCUDA));
    rates = torch::zeros({2}, torch::kCUDA);
    for (Turn* turn : {&turns[0], &turns[1], &arrival}) {
      turn->rows = torch::zeros({count}, torch::dtype(torch::kInt64).pinned_memory(true));
      turn->rates = torch::zeros({2}, torch::TensorOptions().pinned_memory(true));
      turn->report = torch::zeros({2}, torch::TensorOptions().pinned_memory(true));
    }
  }

  const UpdaterConfig config;
  Ranks& ranks;
  const BatchPart part;
  ThreadPool pool;
  std::shared_ptr<Objective> objective;
  Sgd optimizer;
  std::unique_ptr<GradientExchangeGpu> exchange;  // null without ranks
  std::unique_ptr<TwoViewsGpu> views;
  std::unique_ptr<TwoViewsGpu> arrival_views;  // constructed when first needed

  Recording update_recording;
  torch::Tensor pictures;  // what it reads: those of the first views, then any of the second ones
  torch::Tensor rates;     // learning rates: of the encoder, of the predictor
  torch::Tensor features;  // what it leaves
  torch::Tensor report;    // loss, std
  Recording arrival_recording;
  torch::Tensor arrival_features;

  torch::Tensor rows;  // which pictures, for those on the device already

  std::array<Turn, 2> turns;  // of even and odd updates
  Turn arrival;
  Turn* last = nullptr;
  Outcome outcome;
  bool lost = false;  // `outcome` is of an update whose loss was not finite

  torch::Tensor first_pictures() const { return pictures.narrow(0, 0, part.samples); }
  void bring(Turn& turn, const torch::Tensor& to_pictures, const Pictures& given);
  void finish(Turn& turn);
  void update_once();
  void arrival_once();
  void record_update();
  void replay_arrival(const Pictures& given);
  void record_arrival();
  void drop_recordings();
};

// Brings the pictures of a batch to where the graph reads them: all of `pictures`, or those of the
// first views alone.
void UpdaterGpu::State::bring(Turn& turn, const torch::Tensor& to_pictures, const Pictures& given) {
  std::vector<std::int64_t> indices = given.indices;
  if (to_pictures.size(0) > part.samples) {
    const auto& second = given.second.empty() ? given.indices : given.second;
    indices.insert(indices.end(), second.begin(), second.end());
  }
  if (given.tensor.is_cuda()) {
    std::ranges::copy(indices, turn.rows.mutable_data_ptr<std::int64_t>());
    rows.copy_(turn.rows, /*non_blocking=*/true);
    at::Tensor wide = wide_rows(to_pictures);
    at::index_select_out(wide, wide_rows(given.tensor), 0, rows.narrow(0, 0, to_pictures.size(0)));
    return;
  }
  if (!turn.staging.defined()) {
    turn.staging = torch::empty(pictures.sizes(),
                                torch::TensorOptions().dtype(torch::kByte).pinned_memory(true));
  }
  const auto bytes = static_cast<std::size_t>(given.tensor.stride(0));
  const auto* from = given.tensor.const_data_ptr<std::uint8_t>();
  auto* to = turn.staging.mutable_data_ptr<std::uint8_t>();
  constexpr std::int64_t kRowsATask = 16;
  const std::int64_t count = std::ssize(indices);
  pool.for_each((count + kRowsATask - 1) / kRowsATask, [&](std::int64_t task) {
    for (std::int64_t i = task * kRowsATask; i < std::min(count, (task + 1) * kRowsATask); ++i) {
      const auto place = static_cast<std::size_t>(i);
      std::memcpy(to + place * bytes, from + static_cast<std::size_t>(indices[place]) * bytes,
                  bytes);
    }
  });
  to_pictures.copy_(turn.staging.narrow(0, 0, to_pictures.size(0)), /*non_blocking=*/true);
}

// Waits for the end of an update; from then on the turn's memory is free.
void UpdaterGpu::State::finish(Turn& turn) {
  if (turn.step < 0) return;
  turn.done.synchronize();
  const auto* report_values = turn.report.const_data_ptr<float>();
  if (!lost) outcome = {turn.step, report_values[0], report_values[1]};
  lost = lost || !std::isfinite(outcome.loss);
  turn.step = -1;
}

// One update from what is on the device; queues work and waits for nothing.
void UpdaterGpu::State::update_once() {
  const ObjectiveOutput output = objective->forward(views->render(pictures), part.fresh);
  features = output.features;
  report = torch::stack({output.loss.detach(), output.std});
  if (exchange) {
    exchange->begin(report);
    output.loss.backward(exchange->share());
    exchange->finish();
  } else {
    output.loss.backward();
  }
  optimizer.step(rates[0], rates[1]);
  objective->after_step();
}

void UpdaterGpu::State::arrival_once() {
  arrival_features = objective->features(arrival_views->render(first_pictures(), /*views=*/1));
}

void UpdaterGpu::State::record_update() {
  if (type_of(config) == torch::kFloat32) at::globalContext().setAllowTF32CuDNN(false);
  // Trial runs must not change the network.
  std::vector<torch::Tensor> state = objective->parameters();
  for (const torch::Tensor& buffer : objective->buffers()) state.push_back(buffer);
  const NamedTensors momenta = optimizer.state();
  std::vector<torch::Tensor> before;
  for (const torch::Tensor& tensor : state) before.push_back(tensor.detach().clone());
  // Whoever waits here is not lost, however long the others search.
  ranks.wait_for_all();
  try_out([this] { update_once(); });
  ranks.wait_for_all();
  features.reset();
  report.reset();
  {
    const torch::NoGradGuard no_gradient;
    for (std::size_t i = 0; i < state.size(); ++i) state[i].copy_(before[i]);
  }
  before.clear();
  optimizer.load_state(momenta);
  c10::cuda::device_synchronize();
  record(update_recording, nullptr, [this] { update_once(); });
}

void UpdaterGpu::State::record_arrival() {
  try_out([this] { arrival_once(); });
  arrival_features.reset();
  record(arrival_recording, &update_recording, [this] { arrival_once(); });
}

// They are recorded again when next needed.
void UpdaterGpu::State::drop_recordings() {
  c10::cuda::device_synchronize();
  features.reset();
  report.reset();
  arrival_features.reset();
  // In this order: the first may live in the memory of the second.
  for (Recording* recording : {&arrival_recording, &update_recording}) {
    recording->graph.reset();
    recording->done = false;
  }
}

bool UpdaterGpu::can(const UpdaterConfig& config, at::Device device, const Ranks& ranks) {
  return device.is_cuda() && (ranks.alone() || ranks.on_gpu()) &&
         TwoViewsGpu::fits(config.augment.size, config.picture_size);
}

UpdaterGpu::UpdaterGpu(const UpdaterConfig& config, std::shared_ptr<Objective> objective,
                       Ranks& ranks)
    : state_(std::make_unique<State>(config, std::move(objective), ranks)) {}

UpdaterGpu::~UpdaterGpu() = default;

at::Tensor UpdaterGpu::update(const Pictures& pictures, std::int64_t step, double lr,
                              double predictor_lr) {
  State& s = *state_;
  Turn& turn = s.turns[static_cast<std::size_t>(step % 2)];
  s.finish(turn);
  if (s.objective->advance_to(step)) s.drop_recordings();
  s.bring(turn, s.pictures, pictures);
  s.views->upload(static_cast<std::uint64_t>(step));
  auto* rates = turn.rates.mutable_data_ptr<float>();
  rates[0] = static_cast<float>(lr);
  rates[1] = static_cast<float>(predictor_lr);
  s.rates.copy_(turn.rates, /*non_blocking=*/true);
  if (!s.update_recording.done) s.record_update();
  s.update_recording.graph.replay();
  turn.report.copy_(s.report, /*non_blocking=*/true);
  turn.done.record(c10::cuda::getCurrentCUDAStream());
  turn.step = step;
  s.last = &turn;
  s.views->plan(static_cast<std::uint64_t>(step) + 1);
  return s.features;
}

Updater::Outcome UpdaterGpu::outcome() {
  State& s = *state_;
  // In the order in which they were begun.
  for (Turn& turn : s.turns) {
    if (&turn != s.last) s.finish(turn);
  }
  if (s.last != nullptr) s.finish(*s.last);
  return s.outcome;
}

// Features of at most a batch of pictures; rows beyond them mean nothing.
void UpdaterGpu::State::replay_arrival(const Pictures& given) {
  if (!arrival_views) {
    arrival_views = make_views(config, no_augmentation(config.augment.size), part, pool);
  }
  arrival.done.synchronize();  // those before
  bring(arrival, first_pictures(), given);
  arrival_views->upload(/*step=*/0);
  if (!arrival_recording.done) record_arrival();
  arrival_recording.graph.replay();
  arrival.done.record(c10::cuda::getCurrentCUDAStream());
}

at::Tensor UpdaterGpu::arrival_features(const Pictures& pictures) {
  State& s = *state_;
  const std::int64_t count = std::ssize(pictures.indices);
  const std::int64_t batch = s.part.samples;
  if (count == batch) {
    s.replay_arrival(pictures);
    return s.arrival_features;
  }
  std::vector<at::Tensor> parts;
  for (std::int64_t first = 0; first < count; first += batch) {
    const std::int64_t rows = std::min(batch, count - first);
    const auto begin = pictures.indices.begin() + first;
    s.replay_arrival({pictures.tensor, {begin, begin + rows}});
    parts.push_back(s.arrival_features.narrow(0, 0, rows).clone());
  }
  return torch::cat(parts);
}

Objective& UpdaterGpu::objective() { return *state_->objective; }
NamedTensors UpdaterGpu::momenta() { return state_->optimizer.state(); }
void UpdaterGpu::load_momenta(const NamedTensors& momenta) {
  state_->optimizer.load_state(momenta);
}

}  // namespace riffle

#include "riffle/train/gpu_updater.h"

#include <algorithm>
#include <cstring>

#include <ATen/Context.h>
#include <ATen/cuda/CUDAGraph.h>
#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDAFunctions.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>
#include <torch/torch.h>

#include "riffle/augment/two_views_gpu.h"
#include "riffle/base/error.h"
#include "riffle/base/thread_pool.h"
#include "riffle/train/sgd.h"

namespace riffle {
namespace {

torch::ScalarType type_of(const UpdaterConfig& config) {
  return config.train.precision == Precision::float32 ? torch::kFloat32 : torch::kBFloat16;
}

// The layout that the first convolution is quickest on.
ViewLayout layout_of(const UpdaterConfig& config) {
  if (type_of(config) == torch::kFloat32) return ViewLayout::plain;
  if (config.model.stem != Stem::standard) return ViewLayout::padded;
  return config.augment.size % 2 == 0 ? ViewLayout::folded : ViewLayout::plain;
}

std::shared_ptr<Objective> make_objective(const UpdaterConfig& config) {
  auto objective = make_simsiam(config.model, config.seed);
  objective->to(torch::kCUDA);
  return objective;
}

std::unique_ptr<TwoViewsGpu> make_views(const UpdaterConfig& config, std::uint64_t seed,
                                        ThreadPool& pool) {
  return std::make_unique<TwoViewsGpu>(config.augment, seed, pool, config.train.batch,
                                       config.picture_size, layout_of(config), type_of(config));
}

}  // namespace

struct GpuUpdater::State {
  explicit State(const UpdaterConfig& updater_config)
      : config(updater_config),
        pool(static_cast<int>(config.train.threads)),
        objective(make_objective(config)),
        optimizer(*objective, config.train),
        views(make_views(config, config.seed, pool)) {
    const auto bytes = torch::TensorOptions().dtype(torch::kByte);
    const std::vector<std::int64_t> shape = {config.train.batch, config.picture_size,
                                             config.picture_size, 3};
    pictures = torch::empty(shape, bytes.device(torch::kCUDA));
    staging = torch::empty(shape, bytes.pinned_memory(true));
    rows = torch::zeros({config.train.batch}, torch::dtype(torch::kInt64).device(torch::kCUDA));
    host_rows = torch::zeros({config.train.batch}, torch::dtype(torch::kInt64).pinned_memory(true));
    rates = torch::zeros({2}, torch::kCUDA);
    host_rates = torch::zeros({2}, torch::TensorOptions().pinned_memory(true));
    host_report = torch::zeros({2}, torch::TensorOptions().pinned_memory(true));
  }

  const UpdaterConfig config;
  ThreadPool pool;
  std::shared_ptr<Objective> objective;
  Sgd optimizer;
  std::unique_ptr<TwoViewsGpu> views;
  std::unique_ptr<TwoViewsGpu> arrival_views;  // made when first needed

  at::cuda::CUDAGraph graph;
  bool recorded = false;
  torch::Tensor pictures;  // what the graph reads
  torch::Tensor rates;     // learning rates: of the encoder, of the predictor
  torch::Tensor features;  // what it leaves
  torch::Tensor report;    // loss, std

  torch::Tensor rows;     // which pictures, for those on the device already
  torch::Tensor staging;  // the same in host memory, where the device copies from
  torch::Tensor host_rows;
  torch::Tensor host_rates;
  torch::Tensor host_report;

  void bring(const Pictures& given);
  void run_once();
  void record();
};

// Brings the pictures of a batch to where the graph reads them.
void GpuUpdater::State::bring(const Pictures& given) {
  if (given.tensor.is_cuda()) {
    std::copy(given.indices.begin(), given.indices.end(),
              host_rows.mutable_data_ptr<std::int64_t>());
    rows.copy_(host_rows, /*non_blocking=*/true);
    at::index_select_out(pictures, given.tensor, 0, rows);
    return;
  }
  const auto bytes = static_cast<std::size_t>(given.tensor.stride(0));
  const auto* from = given.tensor.const_data_ptr<std::uint8_t>();
  auto* to = staging.mutable_data_ptr<std::uint8_t>();
  constexpr std::int64_t kRowsATask = 16;
  const auto count = static_cast<std::int64_t>(given.indices.size());
  pool.for_each((count + kRowsATask - 1) / kRowsATask, [&](std::int64_t task) {
    for (std::int64_t i = task * kRowsATask; i < std::min(count, (task + 1) * kRowsATask); ++i) {
      const auto place = static_cast<std::size_t>(i);
      std::memcpy(to + place * bytes, from + static_cast<std::size_t>(given.indices[place]) * bytes,
                  bytes);
    }
  });
  pictures.copy_(staging, /*non_blocking=*/true);
}

// One update from what is on the device; queues work and waits for nothing.
void GpuUpdater::State::run_once() {
  const ObjectiveOutput output = objective->forward(views->render(pictures));
  output.loss.backward();
  optimizer.step(rates[0], rates[1]);
  features = output.features;
  report = torch::stack({output.loss.detach(), output.std});
}

void GpuUpdater::State::record() {
  auto& context = at::globalContext();
  context.setBenchmarkCuDNN(true);
  if (type_of(config) == torch::kFloat32) context.setAllowTF32CuDNN(false);

  // Trial runs let the libraries choose their algorithms, and leave no trace in the network.
  std::vector<torch::Tensor> state = objective->parameters();
  for (const torch::Tensor& buffer : objective->buffers()) state.push_back(buffer);
  const NamedTensors momenta = optimizer.state();
  std::vector<torch::Tensor> before;
  for (const torch::Tensor& tensor : state) before.push_back(tensor.detach().clone());
  const auto stream = c10::cuda::getStreamFromPool();
  c10::cuda::device_synchronize();
  {
    const c10::cuda::CUDAStreamGuard guard(stream);
    constexpr int kTrials = 3;
    for (int i = 0; i < kTrials; ++i) run_once();
    c10::cuda::device_synchronize();
    features.reset();
    report.reset();
    const torch::NoGradGuard no_gradient;
    for (std::size_t i = 0; i < state.size(); ++i) state[i].copy_(before[i]);
    before.clear();
    optimizer.load_state(momenta);
    c10::cuda::device_synchronize();
    c10::cuda::CUDACachingAllocator::emptyCache();
  }
  {
    const c10::cuda::CUDAStreamGuard guard(stream);
    graph.capture_begin();
    run_once();
    graph.capture_end();
  }
  c10::cuda::device_synchronize();
  recorded = true;
}

bool GpuUpdater::can(const UpdaterConfig& config, at::Device device) {
  return device.is_cuda() && TwoViewsGpu::fits(config.augment.size, config.picture_size);
}

GpuUpdater::GpuUpdater(const UpdaterConfig& config) : state_(std::make_unique<State>(config)) {}

GpuUpdater::~GpuUpdater() = default;

Updater::Result GpuUpdater::update(const Pictures& pictures, std::int64_t step, double lr,
                                   double predictor_lr) {
  State& s = *state_;
  s.bring(pictures);
  s.views->upload(static_cast<std::uint64_t>(step));
  auto* rates = s.host_rates.mutable_data_ptr<float>();
  rates[0] = static_cast<float>(lr);
  rates[1] = static_cast<float>(predictor_lr);
  s.rates.copy_(s.host_rates, /*non_blocking=*/true);
  if (!s.recorded) s.record();
  s.graph.replay();
  s.host_report.copy_(s.report, /*non_blocking=*/true);
  s.views->plan(static_cast<std::uint64_t>(step) + 1);
  c10::cuda::getCurrentCUDAStream().synchronize();
  const auto* report = s.host_report.const_data_ptr<float>();
  return {.loss = report[0], .std = report[1], .features = s.features};
}

at::Tensor GpuUpdater::arrival_features(const Pictures& pictures, std::int64_t step) {
  State& s = *state_;
  if (!s.arrival_views) {
    s.arrival_views = make_views(s.config, ~s.config.seed, s.pool);
  }
  s.bring(pictures);
  s.arrival_views->upload(static_cast<std::uint64_t>(step));
  const at::Tensor features = s.objective->features(s.arrival_views->render(s.pictures));
  c10::cuda::getCurrentCUDAStream().synchronize();  // the staging memory is free again
  return features;
}

Objective& GpuUpdater::objective() { return *state_->objective; }
NamedTensors GpuUpdater::momenta() { return state_->optimizer.state(); }
void GpuUpdater::load_momenta(const NamedTensors& momenta) {
  state_->optimizer.load_state(momenta);
}

}  // namespace riffle

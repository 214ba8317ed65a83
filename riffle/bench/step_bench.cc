#include "riffle/bench/step_bench.h"

#include <algorithm>
#include <chrono>
#include <numeric>
#include <utility>
#include <vector>

#include <torch/types.h>
#include <torch/utils.h>

#include "riffle/base/random.h"
#if RIFFLE_CUDA
#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDAFunctions.h>
#endif

namespace riffle {
namespace {

// Small: the work is the same at any rate, and the loss stays finite.
constexpr double kRate = 1e-3;

double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

torch::Tensor random_views(std::int64_t batch, std::int64_t size) {
  torch::Tensor views =
      torch::empty({2 * batch, 3, size, size},
                   torch::TensorOptions().memory_format(torch::MemoryFormat::ChannelsLast));
  Random random(0, Purpose("bench/view"), 0);
  float* values = views.data_ptr<float>();
  for (std::int64_t i = 0; i < views.numel(); ++i) values[i] = random.normal();
  return views;
}

Pictures random_pictures(std::int64_t batch, std::int64_t size) {
  std::vector<std::int64_t> places(static_cast<std::size_t>(batch));
  std::iota(places.begin(), places.end(), 0);
  return {torch::randint(256, {batch, size, size, 3}, torch::kByte), places};
}

}  // namespace

StepBench::StepBench(const ModelConfig& model, std::int64_t batch, std::int64_t size,
                     torch::Device device, Ranks& ranks)
    : batch_(batch) {
  if (device.is_cpu()) {
    objective_ = make_objective(model, /*seed=*/0);
    optimizer_ =
        std::make_unique<Sgd>(*objective_, objective_->predictor_parameters(), TrainConfig());
    views_ = random_views(batch, size);
    return;
  }
  UpdaterConfig config;
  config.model = model;
  config.augment.size = config.picture_size = size;
  config.train.batch = batch;
  config.device = "cuda";
  updater_ = make_updater(config, nullptr, ranks);
  pictures_ = random_pictures(ranks.part_of(batch), size);
  pictures_.tensor = pictures_.tensor.to(device);
}

void StepBench::step() {
  if (updater_) {
    updater_->update(pictures_, steps_++, kRate, kRate);
    return;
  }
  objective_->forward(views_).loss.backward();
  optimizer_->step(kRate, kRate);
  objective_->after_step();
}

StepBenchResult StepBench::round(double seconds) {
  std::vector<double> times;
  const double begin = now();
  double last = begin;
  do {
    step();
    const double time = now();
    times.push_back(time - std::exchange(last, time));
  } while (last < begin + seconds);
  StepBenchResult result{.steps = static_cast<std::int64_t>(times.size())};
  if (updater_) {
    // Steps overlap: only the time of all together means something.
    updater_->outcome();
    result.seconds_per_step = (now() - begin) / static_cast<double>(result.steps);
  } else {
    const auto middle = times.begin() + static_cast<std::ptrdiff_t>(times.size() / 2);
    std::nth_element(times.begin(), middle, times.end());
    result.seconds_per_step = *middle;
  }
  result.images_per_s = static_cast<double>(batch_) / result.seconds_per_step;
  return result;
}

std::int64_t gpu_peak_bytes() {
#if RIFFLE_CUDA
  using c10::CachingAllocator::StatType;
  const auto stats = c10::cuda::CUDACachingAllocator::getDeviceStats(c10::cuda::current_device());
  return stats.reserved_bytes[static_cast<std::size_t>(StatType::AGGREGATE)].peak;
#else
  return 0;
#endif
}

StepBenchResult bench_step(const ModelConfig& model, std::int64_t batch, std::int64_t size,
                           int threads, double seconds, torch::Device device) {
  torch::set_num_threads(threads);
  StepBench bench(model, batch, size, device);
  constexpr double kWarmUp = 0.2;
  bench.round(kWarmUp * seconds);
  return bench.round(seconds);
}

}  // namespace riffle

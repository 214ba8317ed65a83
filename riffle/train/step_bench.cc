#include "riffle/train/step_bench.h"

#include <algorithm>
#include <chrono>
#include <vector>

#include <torch/torch.h>

#include "riffle/base/random.h"

namespace riffle {
namespace {

constexpr double kRate =
    1e-3;  // small: the work is the same at any rate, and the loss stays finite

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

void finish(torch::Device device) {
  if (device.is_cuda()) torch::cuda::synchronize(device.index());
}

}  // namespace

StepBench::StepBench(const ModelConfig& model, std::int64_t batch, std::int64_t size,
                     torch::Device device)
    : batch_(batch),
      device_(device),
      objective_(make_simsiam(model, /*seed=*/0)),
      optimizer_(*objective_, TrainConfig()),
      views_(random_views(batch, size).to(device)) {
  objective_->to(device);
}

void StepBench::step() {
  objective_->forward(views_).loss.backward();
  optimizer_.step(kRate, kRate);
}

StepBenchResult StepBench::round(double seconds) {
  std::vector<double> times;
  const double end = now() + seconds;
  do {
    const double begin = now();
    step();
    finish(device_);
    times.push_back(now() - begin);
  } while (now() < end);
  const auto middle = times.begin() + static_cast<std::ptrdiff_t>(times.size() / 2);
  std::nth_element(times.begin(), middle, times.end());
  return {.steps = static_cast<std::int64_t>(times.size()),
          .seconds_per_step = *middle,
          .images_per_s = static_cast<double>(batch_) / *middle};
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

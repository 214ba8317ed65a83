// How fast one update is. On the CPU: forward, backward and SGD on given views. On a GPU: all that
// an Updater does with given pictures, views included.
#pragma once

#include <cstdint>
#include <memory>

#include <torch/types.h>

#include "riffle/model/model_config.h"
#include "riffle/train/sgd.h"
#include "riffle/train/updater.h"

namespace riffle {

struct StepBenchResult {
  std::int64_t steps = 0;
  // On the CPU the median, on a GPU the mean.
  double seconds_per_step = 0.0;
  // Pictures, of each of which there are two views.
  double images_per_s = 0.0;
};

// A model with random views or pictures, kept between rounds so that rounds can alternate with
// something else on a noisy machine.
class StepBench {
 public:
  // `ranks`: who makes updates together, on a GPU; they must outlive this.
  StepBench(const ModelConfig& model, std::int64_t batch, std::int64_t size, torch::Device device,
            Ranks& ranks = one_rank());

  // Updates for about `seconds`, at least one. The first round of all should be thrown away.
  StepBenchResult round(double seconds);

 private:
  void step();

  std::int64_t batch_;
  // On the CPU:
  std::shared_ptr<Objective> objective_;
  std::unique_ptr<Sgd> optimizer_;
  torch::Tensor views_;
  // On a GPU:
  std::unique_ptr<Updater> updater_;
  Pictures pictures_;
  std::int64_t steps_ = 0;
};

// Returns the most memory of the GPU that this process has held so far; 0 without CUDA.
std::int64_t gpu_peak_bytes();

// Runs one round after a warm-up of a few steps, with `threads` threads.
StepBenchResult bench_step(const ModelConfig& model, std::int64_t batch, std::int64_t size,
                           int threads, double seconds, torch::Device device);

}  // namespace riffle

// How fast one update is. On the CPU: forward, backward and SGD on given views. On a GPU: all that
// an Updater does with given pictures, so the views are made too.
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
  double seconds_per_step = 0.0;  // on the CPU of the middle step, on a GPU of all
  double images_per_s = 0.0;      // pictures, each of which gives two views
};

// A model with random views or pictures, kept between rounds so that rounds can alternate with
// something else on a noisy machine.
class StepBench {
 public:
  StepBench(const ModelConfig& model, std::int64_t batch, std::int64_t size, torch::Device device);

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

// The most memory of the GPU that this process has held so far; 0 without CUDA.
std::int64_t gpu_peak_bytes();

// One round after a warm-up of a few steps, with `threads` threads.
StepBenchResult bench_step(const ModelConfig& model, std::int64_t batch, std::int64_t size,
                           int threads, double seconds, torch::Device device);

}  // namespace riffle

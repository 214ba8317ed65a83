// Makes updates on a GPU, in builds with CUDA, as one recorded graph: views, forward, backward and
// SGD are launched together, with nothing to allocate and nothing for the host to decide in
// between. So are the features of samples that arrive.
//
// The first update records the graph, and so does the first one after the network has grown. That
// takes a few seconds, for the fastest algorithm of every convolution is searched. The pictures,
// the random decisions and the learning rates are data on the device. While the GPU works on one
// update the host prepares and queues the next, so that the GPU never waits; the host waits when it
// is two updates ahead.
//
// Several ranks that exchange from GPU to GPU (riffle/dist/ranks_gpu.h) record the exchange too.
#pragma once

#include <memory>

#include "riffle/train/updater.h"

namespace riffle {

class UpdaterGpu : public Updater {
 public:
  // Returns whether device, configuration and ranks allow it.
  static bool can(const UpdaterConfig& config, at::Device device, const Ranks& ranks);

  // `objective` is on the GPU, and shares `ranks`.
  UpdaterGpu(const UpdaterConfig& config, std::shared_ptr<Objective> objective,
             Ranks& ranks = one_rank());
  ~UpdaterGpu() override;

  at::Tensor update(const Pictures& pictures, std::int64_t step, double lr,
                    double predictor_lr) override;
  Outcome outcome() override;
  at::Tensor arrival_features(const Pictures& pictures) override;
  Objective& objective() override;
  NamedTensors momenta() override;
  void load_momenta(const NamedTensors& momenta) override;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace riffle

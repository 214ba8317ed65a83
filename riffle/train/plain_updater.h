// Makes updates by LibTorch's operations, one after the other, on any device, with views from the
// CPU.
#pragma once

#include "riffle/augment/two_views.h"
#include "riffle/base/thread_pool.h"
#include "riffle/train/batch_part.h"
#include "riffle/train/gradient_exchange.h"
#include "riffle/train/sgd.h"
#include "riffle/train/updater.h"

namespace riffle {

class PlainUpdater : public Updater {
 public:
  // `objective` is on the device.
  PlainUpdater(const UpdaterConfig& config, std::shared_ptr<Objective> objective, at::Device device,
               Ranks& ranks = one_rank());

  at::Tensor update(const Pictures& pictures, std::int64_t step, double lr,
                    double predictor_lr) override;
  Outcome outcome() override { return outcome_; }
  at::Tensor arrival_features(const Pictures& pictures) override;
  Objective& objective() override { return *objective_; }
  NamedTensors momenta() override { return optimizer_.state(); }
  void load_momenta(const NamedTensors& momenta) override { optimizer_.load_state(momenta); }

 private:
  at::Device device_;
  Ranks& ranks_;
  const BatchPart part_;
  ThreadPool pool_;
  TwoViews training_views_;
  TwoViews arrival_views_;
  std::shared_ptr<Objective> objective_;
  Sgd optimizer_;
  GradientExchange gradients_;
  Outcome outcome_;
};

}  // namespace riffle

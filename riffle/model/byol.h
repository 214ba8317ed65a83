// BYOL (Grill et al., "Bootstrap your own latent", 2020): SimSiam whose predictions are compared
// with embeddings of the other view by a moving average of encoder and projector.
//
// The loss is SimSiam's, the mean of two negative cosine similarities. The paper's, a sum of
// squared distances between unit vectors, is 4 + 4 times that.
//
// Parameters: SimSiam's, and target.{encoder,projector}.* of the moving average.
#pragma once

#include "riffle/model/simsiam.h"

namespace riffle {

class MovingAverage;

class Byol : public SimSiam {
 public:
  Byol(const ModelConfig& config, std::uint64_t seed);

  void follow() override;

 private:
  torch::Tensor targets(const Batch& batch) override;

  double ema_;
  std::shared_ptr<MovingAverage> target_;
};

}  // namespace riffle

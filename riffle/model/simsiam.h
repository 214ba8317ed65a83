// SimSiam (Chen and He, "Exploring simple Siamese representation learning", 2021).
//
// A predictor (linear, norm, ReLU, linear) after the projector. The loss is the mean of the two
// negative cosine similarities between a view's prediction and the other view's embedding, through
// which no gradient flows.
//
// Parameters: encoder.* as torchvision names them, projector.{0,1,3,4,6,7}.*, predictor.{0,1,3}.*.
#pragma once

#include "riffle/model/objective.h"

namespace riffle {

class SimSiam : public Objective {
 public:
  SimSiam(const ModelConfig& config, std::uint64_t seed);

  std::vector<torch::Tensor> predictor_parameters() override;

 protected:
  // Returns what a view's prediction is compared with, of the other view: [2 n, feature_dim], of
  // unit length, without a gradient.
  virtual torch::Tensor targets(const Batch& batch) { return batch.targets; }

 private:
  torch::Tensor loss(const Batch& batch) override;

  std::shared_ptr<Mlp> predictor_;
};

}  // namespace riffle

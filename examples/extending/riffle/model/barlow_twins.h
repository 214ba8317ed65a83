// Barlow Twins (Zbontar et al., "Barlow Twins: self-supervised learning via redundancy reduction",
// 2021) on a ResNet, with SimSiam's projector and no predictor.
//
// The correlation between each channel of the first views' projections and each of the second
// views' shall be the identity: views agree, and channels say different things.
#pragma once

#include "riffle/model/objective.h"
#include "riffle/model/resnet.h"
#include "riffle/model/simsiam.h"

namespace riffle {

class BarlowTwins : public Objective {
 public:
  BarlowTwins(const ModelConfig& config, std::uint64_t seed);

  ObjectiveOutput forward(const torch::Tensor& views) override;
  torch::Tensor features(const torch::Tensor& views) override;
  torch::Tensor encode(const torch::Tensor& pictures) override;
  std::int64_t feature_dim() const override { return feature_dim_; }
  std::int64_t encoder_dim() const override { return encoder_->features(); }
  std::vector<torch::Tensor> predictor_parameters() override { return {}; }

 private:
  std::int64_t feature_dim_;
  std::shared_ptr<ResNet> encoder_;
  std::shared_ptr<Projector> projector_;
};

}  // namespace riffle

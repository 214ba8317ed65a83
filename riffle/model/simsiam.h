// SimSiam (Chen and He, "Exploring simple Siamese representation learning", 2021) on a ResNet.
//
// Projector: three linear layers with batch norm, ReLU after the first two, no affine part in the
// last norm; a linear layer that a norm follows has no bias. Predictor: linear, norm, ReLU, linear.
// The loss is the mean of the two negative cosine similarities between a view's prediction and the
// other view's projection, through which no gradient flows.
//
// Parameters: encoder.* as torchvision names them, projector.{0,1,3,4,6,7}.*, predictor.{0,1,3}.*,
// as in a sequence of layers that counts its ReLUs. features() and encode() leave the module as it
// is and may be called from other threads while nothing trains.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "riffle/model/objective.h"
#include "riffle/model/resnet.h"

namespace riffle {

class Projector : public torch::nn::Module {
 public:
  Projector(const Init& init, std::int64_t in, std::int64_t hidden, std::int64_t out);
  torch::Tensor forward(const torch::Tensor& rows, Pass pass) const;

 private:
  std::shared_ptr<Linear> linear0_, linear3_, linear6_;
  std::shared_ptr<BatchNorm> bn1_, bn4_, bn7_;
};

class Predictor : public torch::nn::Module {
 public:
  Predictor(const Init& init, std::int64_t width, std::int64_t hidden);
  torch::Tensor forward(const torch::Tensor& rows, Pass pass) const;

 private:
  std::shared_ptr<Linear> linear0_, linear3_;
  std::shared_ptr<BatchNorm> bn1_;
};

class SimSiam : public Objective {
 public:
  SimSiam(const ModelConfig& config, std::uint64_t seed);

  ObjectiveOutput forward(const torch::Tensor& views) override;
  torch::Tensor features(const torch::Tensor& views) override;
  torch::Tensor encode(const torch::Tensor& pictures) override;
  bool grow_to(std::int64_t update) override;
  std::int64_t feature_dim() const override { return feature_dim_; }
  std::int64_t encoder_dim() const override { return encoder_->features(); }
  std::vector<torch::Tensor> predictor_parameters() override { return predictor_->parameters(); }

 private:
  torch::Tensor project(const torch::Tensor& views, const Pass& pass) const;
  void set_grown(int blocks);

  std::int64_t feature_dim_;
  std::int64_t grow_every_;
  int grown_ = 0;
  std::shared_ptr<ResNet> encoder_;
  std::shared_ptr<Projector> projector_;
  std::shared_ptr<Predictor> predictor_;
  // Of what is awake:
  std::vector<torch::Tensor> weights_;  // of convolutions and linear layers
  std::vector<torch::Tensor> batches_tracked_;
};

}  // namespace riffle

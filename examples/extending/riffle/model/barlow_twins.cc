#include "riffle/model/barlow_twins.h"

#include <cmath>

#include <torch/types.h>
#include <torch/utils.h>

#include "riffle/tensors/unit_length.h"

namespace riffle {
namespace {

// Weight of the correlations between different channels, as in the paper.
constexpr double kRedundancy = 0.005;

}  // namespace

BarlowTwins::BarlowTwins(const ModelConfig& config, std::uint64_t seed)
    : feature_dim_(config.projector_out) {
  const Init init(seed);
  encoder_ = register_module("encoder", std::make_shared<ResNet>(config, init.at("encoder")));
  const std::int64_t width = encoder_->features();
  const std::int64_t hidden = config.projector_hidden == 0 ? width : config.projector_hidden;
  projector_ = register_module(
      "projector", std::make_shared<Projector>(init.at("projector"), width, hidden, feature_dim_));
}

ObjectiveOutput BarlowTwins::forward(const torch::Tensor& views) {
  const Pass pass{.training = true, .views = 2};
  const torch::Tensor projections = projector_->forward(encoder_->forward(views, pass), pass);
  const auto halves = projections.chunk(2);
  // The projector ends with a norm: in each half a channel has mean 0 and variance 1.
  const torch::Tensor correlation = halves[0].t().mm(halves[1]) / halves[0].size(0);
  const torch::Tensor agreement = correlation.diagonal();
  const torch::Tensor redundancy = correlation.square().sum() - agreement.square().sum();
  // By channel, so that learning rates do not depend on the projector's width.
  const double dim = static_cast<double>(feature_dim_);
  const torch::Tensor loss = ((1 - agreement).square().sum() + kRedundancy * redundancy) / dim;

  const torch::NoGradGuard no_gradient;
  return {.loss = loss,
          .features = unit_length(halves[0] + halves[1]),
          .std = unit_length(projections).std(0, /*unbiased=*/false).mean() * std::sqrt(dim)};
}

torch::Tensor BarlowTwins::features(const torch::Tensor& views) {
  const torch::NoGradGuard no_gradient;
  const Pass pass{.training = false};
  return unit_length(projector_->forward(encoder_->forward(views, pass), pass));
}

torch::Tensor BarlowTwins::encode(const torch::Tensor& pictures) {
  const torch::NoGradGuard no_gradient;
  return encoder_->forward(pictures, {.training = false});
}

}  // namespace riffle

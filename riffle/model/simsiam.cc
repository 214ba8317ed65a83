#include "riffle/model/simsiam.h"

#include <algorithm>
#include <cmath>
#include <string>

#include <torch/types.h>
#include <torch/utils.h>

#include "riffle/base/error.h"
#include "riffle/base/text.h"
#include "riffle/model/weight_cast.h"
#include "riffle/tensors/unit_length.h"

namespace riffle {
namespace {

constexpr std::int64_t kViews = 2;

// The sum of a batch's two projections, at unit length, from both views' rows one after the other.
torch::Tensor tracked_features(const torch::Tensor& projections) {
  const auto views = projections.chunk(kViews);
  return unit_length(views[0] + views[1]);
}

void check_views(const torch::Tensor& views) {
  if (views.dim() != 4 || views.size(0) % kViews != 0) {
    throw std::logic_error(
        cat("views must be [2 * batch, channels, height, width], not ", views.sizes()));
  }
}

std::int64_t positive(std::int64_t value, const char* key) {
  if (value < 1) throw Error(cat(key, " is ", value, "; it must be at least 1"));
  return value;
}

// A block that wakes must be the identity until then.
std::int64_t checked_growth(const ModelConfig& config) {
  const std::int64_t every = config.grow_every;
  if (every < 0) throw Error(cat("model.grow_every is ", every, "; it must be at least 0"));
  if (every > 0 && config.residual_gamma != 0.0) {
    throw Error(cat("model.grow_every=", every, " needs model.residual_gamma=0, not ",
                    config.residual_gamma, ": a block that is added must begin as the identity"));
  }
  if (every > 0 && !config.init.empty()) {
    throw Error(cat("model.grow_every=", every, " cannot go with model.init=", config.init,
                    ": the blocks to be added would not begin as the identity"));
  }
  return every;
}

bool awake(const torch::Tensor& parameter) { return parameter.requires_grad(); }

}  // namespace

Projector::Projector(const Init& init, std::int64_t in, std::int64_t hidden, std::int64_t out)
    : linear0_(register_module("0", std::make_shared<Linear>(init.at("0"), in, hidden, false))),
      linear3_(register_module("3", std::make_shared<Linear>(init.at("3"), hidden, hidden, false))),
      linear6_(register_module("6", std::make_shared<Linear>(init.at("6"), hidden, out, false))),
      bn1_(register_module("1", std::make_shared<BatchNorm>(hidden))),
      bn4_(register_module("4", std::make_shared<BatchNorm>(hidden))),
      bn7_(register_module(
          "7", std::make_shared<BatchNorm>(out, BatchNorm::Options{.affine = false}))) {}

torch::Tensor Projector::forward(const torch::Tensor& rows, Pass pass) const {
  torch::Tensor hidden = bn1_->forward(linear0_->forward(rows), pass, /*relu=*/true);
  hidden = bn4_->forward(linear3_->forward(hidden), pass, /*relu=*/true);
  return bn7_->forward(linear6_->forward(hidden).to(torch::kFloat32), pass, /*relu=*/false);
}

Predictor::Predictor(const Init& init, std::int64_t width, std::int64_t hidden)
    : linear0_(register_module("0", std::make_shared<Linear>(init.at("0"), width, hidden, false))),
      linear3_(register_module("3", std::make_shared<Linear>(init.at("3"), hidden, width, true))),
      bn1_(register_module("1", std::make_shared<BatchNorm>(hidden))) {}

torch::Tensor Predictor::forward(const torch::Tensor& rows, Pass pass) const {
  return linear3_->forward(bn1_->forward(linear0_->forward(rows), pass, /*relu=*/true));
}

SimSiam::SimSiam(const ModelConfig& config, std::uint64_t seed)
    : feature_dim_(positive(config.projector_out, "model.projector_out")),
      grow_every_(checked_growth(config)) {
  const Init init(seed);
  encoder_ = register_module("encoder", std::make_shared<ResNet>(config, init.at("encoder")));
  const std::int64_t hidden = config.projector_hidden == 0
                                  ? encoder_->features()
                                  : positive(config.projector_hidden, "model.projector_hidden");
  projector_ = register_module(
      "projector", std::make_shared<Projector>(init.at("projector"), encoder_->features(), hidden,
                                               feature_dim_));
  predictor_ = register_module(
      "predictor",
      std::make_shared<Predictor>(init.at("predictor"), feature_dim_,
                                  positive(config.predictor_hidden, "model.predictor_hidden")));
  set_grown(grow_every_ == 0 ? encoder_->blocks_to_grow() : 0);
}

void SimSiam::set_grown(int blocks) {
  grown_ = blocks;
  encoder_->set_grown(blocks);
  weights_.clear();
  for (const torch::Tensor& parameter : parameters()) {
    if (parameter.dim() > 1 && awake(parameter)) weights_.push_back(parameter);
  }
  batches_tracked_.clear();
  for (const auto& module : modules(/*include_self=*/false)) {
    const auto norm = std::dynamic_pointer_cast<BatchNorm>(module);
    if (norm && std::ranges::all_of(norm->parameters(), awake)) {
      batches_tracked_.push_back(norm->batches_tracked());
    }
  }
}

bool SimSiam::grow_to(std::int64_t update) {
  if (grow_every_ == 0) return false;
  const auto blocks =
      static_cast<int>(std::min<std::int64_t>(update / grow_every_, encoder_->blocks_to_grow()));
  if (blocks == grown_) return false;
  set_grown(blocks);
  return true;
}

// Float32. Both views of a batch pass together, batch norm keeping their statistics apart:
// convolutions are quicker on one large batch than on two.
torch::Tensor SimSiam::project(const torch::Tensor& views, const Pass& pass) const {
  return projector_->forward(encoder_->forward(views, pass), pass);
}

ObjectiveOutput SimSiam::forward(const torch::Tensor& views) {
  check_views(views);
  const WeightCast cast(weights_, views.scalar_type());
  const Pass pass{.training = true, .views = kViews};
  const torch::Tensor projections = project(views, pass);
  const torch::Tensor predictions =
      predictor_->forward(projections.to(views.scalar_type()), pass).to(torch::kFloat32);
  const torch::Tensor fixed = projections.detach();
  const torch::Tensor targets = unit_length(fixed);
  const std::int64_t batch = views.size(0) / kViews;
  const torch::Tensor loss = (unit_length(predictions) * targets.roll(batch, 0)).sum() *
                             (-1.0 / static_cast<double>(kViews * batch));

  const torch::NoGradGuard no_gradient;
  at::_foreach_add_(batches_tracked_, kViews);
  const double dim = static_cast<double>(feature_dim_);
  return {.loss = loss,
          .features = tracked_features(fixed),
          .std = targets.std(0, /*unbiased=*/false).mean() * std::sqrt(dim)};
}

torch::Tensor SimSiam::features(const torch::Tensor& views) {
  const torch::NoGradGuard no_gradient;
  const WeightCast cast(weights_, views.scalar_type());
  return unit_length(project(views, {.training = false}));
}

torch::Tensor SimSiam::encode(const torch::Tensor& pictures) {
  const torch::NoGradGuard no_gradient;
  return encoder_->forward(pictures, {.training = false});
}

}  // namespace riffle

#include "riffle/model/moving_average.h"

#include <ATen/ATen.h>
#include <torch/types.h>
#include <torch/utils.h>

#include "riffle/model/backbone.h"
#include "riffle/model/mlp.h"
#include "riffle/model/weight_cast.h"

namespace riffle {

MovingAverage::MovingAverage(const ModelConfig& config, std::shared_ptr<const Backbone> encoder,
                             std::shared_ptr<const Mlp> projector)
    : followed_encoder_(std::move(encoder)), followed_projector_(std::move(projector)) {
  const Init any(/*seed=*/0);  // begin() overwrites it
  encoder_ = register_module("encoder", make_backbone(config, any));
  if (followed_projector_) {
    projector_ =
        register_module("projector", make_projector(config, followed_encoder_->features(), any));
  }
  grow();
  begin();
}

std::vector<torch::Tensor> MovingAverage::followed() const {
  std::vector<torch::Tensor> weights = followed_encoder_->parameters();
  if (!followed_projector_) return weights;
  for (const torch::Tensor& weight : followed_projector_->parameters()) weights.push_back(weight);
  return weights;
}

std::vector<torch::Tensor> MovingAverage::followed_statistics() const {
  std::vector<torch::Tensor> statistics = followed_encoder_->buffers();
  if (!followed_projector_) return statistics;
  for (const torch::Tensor& each : followed_projector_->buffers()) statistics.push_back(each);
  return statistics;
}

torch::Tensor MovingAverage::encode(const torch::Tensor& pictures) const {
  const torch::NoGradGuard no_gradient;
  return encoder_->forward(pictures, {.training = false});
}

torch::Tensor MovingAverage::embed(const torch::Tensor& views, const Pass& pass) const {
  const torch::NoGradGuard no_gradient;
  std::vector<torch::Tensor> weights;
  for (const torch::Tensor& parameter : parameters()) {
    if (parameter.dim() > 1) weights.push_back(parameter);
  }
  const WeightCast cast(weights, views.scalar_type());
  return projector_->forward(encoder_->forward(views, pass), pass);
}

void MovingAverage::follow(double ema) {
  const torch::NoGradGuard no_gradient;
  at::_foreach_lerp_(parameters(), followed(), 1.0 - ema);
  if (projector_) return;
  std::vector<torch::Tensor> means, counts, followed_means, followed_counts;
  const std::vector<torch::Tensor> from = followed_statistics();
  const std::vector<torch::Tensor> own = buffers();
  for (std::size_t i = 0; i < own.size(); ++i) {
    const bool is_count = !own[i].is_floating_point();
    (is_count ? counts : means).push_back(own[i]);
    (is_count ? followed_counts : followed_means).push_back(from[i]);
  }
  if (!means.empty()) at::_foreach_lerp_(means, followed_means, 1.0 - ema);
  if (!counts.empty()) at::_foreach_copy_(counts, followed_counts);
}

void MovingAverage::begin() {
  const torch::NoGradGuard no_gradient;
  at::_foreach_copy_(parameters(), followed());
  const std::vector<torch::Tensor> own = buffers();
  if (!own.empty()) at::_foreach_copy_(own, followed_statistics());
}

void MovingAverage::grow() {
  encoder_->set_grown(followed_encoder_->grown());
  for (torch::Tensor& parameter : parameters()) parameter.requires_grad_(false);
}

std::vector<std::shared_ptr<MovingAverage>> moving_averages(const torch::nn::Module& module) {
  std::vector<std::shared_ptr<MovingAverage>> found;
  for (const auto& each : module.modules(/*include_self=*/false)) {
    if (auto average = std::dynamic_pointer_cast<MovingAverage>(each)) {
      found.push_back(std::move(average));
    }
  }
  return found;
}

}  // namespace riffle

#include "riffle/model/layers.h"

#include <torch/types.h>

#include "riffle/model/weight_cast.h"

namespace riffle {
namespace {

constexpr double kMomentum = 0.1;

}  // namespace

Conv::Conv(const Init& init, std::int64_t in, std::int64_t out, std::int64_t kernel,
           std::int64_t stride)
    : weight_(
          register_parameter("weight", init.kaiming_normal("weight", {out, in, kernel, kernel}))),
      stride_(stride),
      padding_(kernel / 2) {}

torch::Tensor Conv::forward(const torch::Tensor& maps) const {
  const torch::Tensor weight = in_type(weight_, maps.scalar_type());
  // LibTorch's oneDNN writes past its memory in the gradient of such a convolution with stride
  // (AVX-512, few channels, large maps). Only every other pixel counts, so it can do without.
  constexpr std::int64_t kFewChannels = 16;
  const bool is_point = weight.size(2) == 1 && weight.size(3) == 1;
  if (stride_ > 1 && is_point && weight.size(1) < kFewChannels && maps.is_cpu()) {
    const torch::Tensor points = maps.slice(2, 0, {}, stride_).slice(3, 0, {}, stride_);
    return at::conv2d(points.contiguous(at::MemoryFormat::ChannelsLast), weight);
  }
  return at::conv2d(maps, weight, {}, stride_, padding_);
}

Linear::Linear(const Init& init, std::int64_t in, std::int64_t out, bool bias)
    : weight_(register_parameter("weight", init.linear_uniform("weight", {out, in}, in))) {
  if (bias) bias_ = register_parameter("bias", init.linear_uniform("bias", {out}, in));
}

torch::Tensor Linear::forward(const torch::Tensor& rows) const {
  const auto type = rows.scalar_type();
  return at::linear(rows, in_type(weight_, type), bias_.defined() ? bias_.to(type) : bias_);
}

BatchNorm::BatchNorm(std::int64_t channels, Options options) {
  if (options.affine) {
    weight_ = register_parameter("weight", torch::full({channels}, options.gamma));
    bias_ = register_parameter("bias", torch::zeros({channels}));
  }
  running_mean_ = register_buffer("running_mean", torch::zeros({channels}));
  running_var_ = register_buffer("running_var", torch::ones({channels}));
  batches_tracked_ = register_buffer("num_batches_tracked", torch::zeros({}, torch::kInt64));
}

BatchNormTensors BatchNorm::tensors(Pass pass) const {
  if (pass.training && pass.counters != nullptr) pass.counters->push_back(batches_tracked_);
  return {.weight = weight_,
          .bias = bias_,
          .running_mean = running_mean_,
          .running_var = running_var_,
          .momentum = kMomentum,
          .epsilon = kBatchNormEpsilon,
          .ranks = pass.ranks};
}

torch::Tensor BatchNorm::forward(const torch::Tensor& maps, Pass pass, bool relu,
                                 const torch::Tensor& residual) const {
  return batch_norm(tensors(pass), maps, pass.training, pass.views, relu, residual);
}

Fork BatchNorm::forward_forked(const torch::Tensor& maps, Pass pass,
                               const torch::Tensor& residual) const {
  return batch_norm_forked(tensors(pass), maps, pass.training, pass.views, /*relu=*/true, residual);
}

torch::Tensor BatchNorm::forward_and_pool(const torch::Tensor& maps, Pass pass) const {
  return batch_norm_relu_pool(tensors(pass), maps, pass.training, pass.views);
}

}  // namespace riffle

#include "riffle/model/visreg.h"

#include <cmath>
#include <numbers>

#include <ATen/ATen.h>
#include <torch/types.h>

#include "riffle/model/slices.h"

namespace riffle {
namespace {

// A collapsed channel is not divided by less than this.
constexpr double kSmallestDeviation = 1e-6;

// Where n samples of a normal distribution lie when they are spread evenly, [n].
torch::Tensor normal_quantiles(std::int64_t n, torch::Device device) {
  const torch::Tensor shares =
      torch::arange(1, n + 1, torch::dtype(torch::kFloat32).device(device)) /
      static_cast<double>(n + 1);
  return (2 * shares - 1).erfinv() * std::numbers::sqrt2;
}

}  // namespace

VisReg::VisReg(const ModelConfig& config, std::uint64_t seed)
    : Objective(config, seed),
      invariance_(config.visreg_invariance),
      regulariser_(config.visreg_regulariser) {
  slices_ = register_module("slices",
                            std::make_shared<Slices>(seed, config.visreg_slices, feature_dim()));
}

void VisReg::follow() { slices_->advance(); }

torch::Tensor VisReg::loss(const Batch& batch) {
  const VisRegTerms terms = visreg_terms(of_all_ranks(batch.projections), slices_->draw());
  return invariance_ * terms.invariance + regulariser_ * (terms.centre + terms.scale + terms.shape);
}

VisRegTerms visreg_terms(const torch::Tensor& projections, const torch::Tensor& directions) {
  const torch::Tensor views = projections.view({2, -1, projections.size(1)});
  const std::int64_t n = views.size(1);
  const torch::Tensor means = views.mean(1, /*keepdim=*/true);
  const torch::Tensor centred = views - means;
  const torch::Tensor deviations =
      centred.norm(2, /*dim=*/1, /*keepdim=*/true) / std::sqrt(static_cast<double>(n));
  const torch::Tensor standard = centred / deviations.detach().clamp_min(kSmallestDeviation);
  // [2, slices, n]: what is sorted lies together.
  const torch::Tensor sketches = at::matmul(directions, standard.transpose(1, 2));
  const torch::Tensor sorted = std::get<0>(sketches.sort(/*dim=*/2));
  // With two views, each is half their difference away from the mean.
  return {.invariance = (views[0] - views[1]).square().mean() / 4,
          .centre = means.square().mean(),
          .scale = (deviations - 1).square().mean(),
          .shape = (sorted - normal_quantiles(n, projections.device())).square().mean()};
}

}  // namespace riffle

#include "riffle/model/vicreg.h"

#include <torch/types.h>

namespace riffle {
namespace {

// Added to a variance before its root is taken, as in the paper.
constexpr double kVicRegEpsilon = 1e-4;

}  // namespace

VicReg::VicReg(const ModelConfig& config, std::uint64_t seed)
    : Objective(config, seed),
      invariance_(config.vicreg_invariance),
      variance_(config.vicreg_variance),
      covariance_(config.vicreg_covariance) {}

torch::Tensor VicReg::loss(const Batch& batch) {
  const VicRegTerms terms = vicreg_terms(of_all_ranks(batch.projections));
  return invariance_ * terms.invariance + variance_ * terms.variance +
         covariance_ * terms.covariance;
}

VicRegTerms vicreg_terms(const torch::Tensor& projections) {
  const torch::Tensor views = projections.view({2, -1, projections.size(1)});
  const torch::Tensor centred = views - views.mean(1, /*keepdim=*/true);
  const auto free = static_cast<double>(views.size(1) - 1);
  const torch::Tensor covariances = centred.transpose(1, 2).bmm(centred) / free;
  const torch::Tensor variances = covariances.diagonal(0, 1, 2);
  const torch::Tensor between = covariances.square().sum() - variances.square().sum();
  return {.invariance = (views[0] - views[1]).square().mean(),
          .variance = (1 - (variances + kVicRegEpsilon).sqrt()).relu().mean(),
          .covariance = between / static_cast<double>(projections.size(1))};
}

}  // namespace riffle

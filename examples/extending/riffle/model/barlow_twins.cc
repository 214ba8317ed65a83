#include "riffle/model/barlow_twins.h"

#include <torch/types.h>

namespace riffle {
namespace {

// Weight of the correlations between different channels, as in the paper.
constexpr double kRedundancy = 0.005;

}  // namespace

torch::Tensor BarlowTwins::loss(const Batch& batch) {
  // The projector ends with a norm: in each half a channel has mean 0 and variance 1.
  const auto halves = of_all_ranks(batch.embeddings).chunk(2);
  const torch::Tensor correlation = halves[0].t().mm(halves[1]) / halves[0].size(0);
  const torch::Tensor agreement = correlation.diagonal();
  const torch::Tensor redundancy = correlation.square().sum() - agreement.square().sum();
  // By channel, so that learning rates do not depend on the projector's width.
  return ((1 - agreement).square().sum() + kRedundancy * redundancy) /
         static_cast<double>(feature_dim());
}

}  // namespace riffle

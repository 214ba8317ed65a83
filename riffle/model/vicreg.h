// VICReg (Bardes et al., "VICReg: variance-invariance-covariance regularization for self-supervised
// learning", 2022), with the projector that all methods share.
//
// The loss is of what the projector gives before the norm at its end, which would hide the
// variance: a weighted sum of
//   invariance  mean squared difference between the two views' projections;
//   variance    by how much a channel's standard deviation falls short of 1, mean over channels and
//               views;
//   covariance  sum of squared covariances between channels, divided by the channels, summed over
//               the views.
#pragma once

#include "riffle/model/objective.h"

namespace riffle {

class VicReg : public Objective {
 public:
  VicReg(const ModelConfig& config, std::uint64_t seed);

 private:
  torch::Tensor loss(const Batch& batch) override;

  double invariance_;
  double variance_;
  double covariance_;
};

struct VicRegTerms {
  torch::Tensor invariance;
  torch::Tensor variance;
  torch::Tensor covariance;
};

// Returns the terms, without weights, of `projections`, [2 n, dim]: those of the first views of n
// samples, then those of the second ones. Requires n > 1.
VicRegTerms vicreg_terms(const torch::Tensor& projections);

}  // namespace riffle

// VISReg (Wu, Balestriero and Levine, "VISReg: variance-invariance-sketching regularization for
// JEPA training", 2026), the successor of LeJEPA's SIGReg, with the projector that all methods
// share.
//
// The loss is of what the projector gives before the norm at its end: a weight times the
// invariance, and another times the sum of the rest, the regulariser.
//   invariance  mean squared distance of a sample's projections from their mean over the views;
//   centre      mean square of each channel's mean;
//   scale       mean squared difference of each channel's standard deviation from 1;
//   shape       once centre and scale are taken out, mean squared distance along random directions
//               between the sorted projections and the quantiles of a normal distribution (sliced
//               Wasserstein).
// The scale is held apart from the shape so that its gradient does not vanish where projections
// collapse.
#pragma once

#include "riffle/model/objective.h"

namespace riffle {

class Slices;

class VisReg : public Objective {
 public:
  VisReg(const ModelConfig& config, std::uint64_t seed);

  void follow() override;

 private:
  torch::Tensor loss(const Batch& batch) override;

  double invariance_;
  double regulariser_;
  std::shared_ptr<Slices> slices_;
};

struct VisRegTerms {
  torch::Tensor invariance;
  torch::Tensor centre;
  torch::Tensor scale;
  torch::Tensor shape;
};

// Returns the terms, without weights, of `projections`, [2 n, dim]: those of the first views of n
// samples, then those of the second ones. `directions`: [slices, dim], of unit length.
VisRegTerms visreg_terms(const torch::Tensor& projections, const torch::Tensor& directions);

}  // namespace riffle

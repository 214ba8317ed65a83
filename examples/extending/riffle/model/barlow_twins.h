// Barlow Twins (Zbontar et al., "Barlow Twins: self-supervised learning via redundancy reduction",
// 2021), with the projector that all methods share and no predictor.
//
// The correlation between each channel of the first views' embeddings and each of the second
// views' shall be the identity: views agree, and channels say different things.
#pragma once

#include "riffle/model/objective.h"

namespace riffle {

class BarlowTwins : public Objective {
 public:
  BarlowTwins(const ModelConfig& config, std::uint64_t seed) : Objective(config, seed) {}

 private:
  torch::Tensor loss(const Batch& batch) override;
};

}  // namespace riffle

// SimCLR (Chen et al., "A simple framework for contrastive learning of visual representations",
// 2020), with the projector that all methods share.
//
// The loss is NT-Xent: each of the 2 n views of a batch is to be told by its embedding's direction
// from the other 2 n - 2 which is the second view of its own sample.
#pragma once

#include "riffle/model/objective.h"

namespace riffle {

class SimClr : public Objective {
 public:
  SimClr(const ModelConfig& config, std::uint64_t seed);

 private:
  torch::Tensor loss(const Batch& batch) override;

  double temperature_;
};

// Returns the mean cross entropy of `embeddings`, [2 n, dim]: those of the first views of n
// samples, then those of the second ones.
torch::Tensor nt_xent(const torch::Tensor& embeddings, double temperature);

}  // namespace riffle

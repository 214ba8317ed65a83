// Keeps what was learned: an extra loss that holds embeddings of replayed samples to those of a
// slow moving average of the network, through a head of its own, whatever the method.
//
// The loss is the mean negative cosine similarity between what the head makes of an embedding and
// the average's embedding of the same view.
//
// Parameters: head.{0,1,3}.*, and target.{encoder,projector}.* of the moving average.
#pragma once

#include <cstdint>
#include <memory>

#include <torch/nn/module.h>
#include <torch/types.h>

#include "riffle/model/layers.h"
#include "riffle/model/model_config.h"

namespace riffle {

class Mlp;
class MovingAverage;

class Alignment : public torch::nn::Module {
 public:
  // `target`: a copy of the network, which follow() moves.
  Alignment(const ModelConfig& config, const Init& init, std::shared_ptr<MovingAverage> target);

  // Returns align.weight times the loss of all samples but the first `fresh`. `views` and
  // `embeddings` are of both views of n samples, as in Objective::Batch. Requires fresh < n.
  torch::Tensor loss(const torch::Tensor& views, const torch::Tensor& embeddings, const Pass& pass,
                     std::int64_t fresh) const;

  // To be called after each step of the optimiser.
  void follow();

 private:
  double weight_;
  double ema_;
  std::shared_ptr<Mlp> head_;
  std::shared_ptr<MovingAverage> target_;
};

}  // namespace riffle

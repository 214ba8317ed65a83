// A copy of encoder and projector that follows their weights as an exponential moving average: the
// target of BYOL and of alignment; or of the encoder alone: what model.average keeps to encode
// with.
//
// Its parameters are saved with the model and require no gradient, and Sgd knows nothing of them.
// The batch norms of a target compute with statistics of the batch, and have running ones of their
// own. No batch passes a copy of the encoder alone; its running statistics follow as the weights
// do.
#pragma once

#include <memory>
#include <vector>

#include <torch/nn/module.h>
#include <torch/types.h>

#include "riffle/model/layers.h"
#include "riffle/model/model_config.h"

namespace riffle {

class Mlp;
class Backbone;

class MovingAverage : public torch::nn::Module {
 public:
  // A copy of these two, which config describes, or with a null projector of the encoder alone. The
  // modules "encoder" and "projector".
  MovingAverage(const ModelConfig& config, std::shared_ptr<const Backbone> encoder,
                std::shared_ptr<const Mlp> projector);

  // As Encoder::encode().
  torch::Tensor encode(const torch::Tensor& pictures) const;

  // Returns embeddings, [n, projector_out] in float32, without a gradient. Requires a projector.
  torch::Tensor embed(const torch::Tensor& views, const Pass& pass) const;

  // Moves to `ema` times itself and 1 - `ema` times the weights.
  void follow(double ema);
  // Becomes equal to the weights, running statistics included.
  void begin();
  // Wakes the blocks that are awake in the encoder. A block that wakes there begins as the
  // identity, here as well.
  void grow();

 private:
  std::vector<torch::Tensor> followed() const;
  std::vector<torch::Tensor> followed_statistics() const;

  std::shared_ptr<const Backbone> followed_encoder_;
  std::shared_ptr<const Mlp> followed_projector_;
  std::shared_ptr<Backbone> encoder_;
  std::shared_ptr<Mlp> projector_;  // null without one
};

// Returns those among the modules of `module`.
std::vector<std::shared_ptr<MovingAverage>> moving_averages(const torch::nn::Module& module);

}  // namespace riffle

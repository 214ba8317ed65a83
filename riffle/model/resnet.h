// Residual networks (He et al., 2016) without the classifier: pictures to pooled features.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include <torch/nn/module.h>
#include <torch/types.h>

#include "riffle/model/backbone.h"
#include "riffle/model/layers.h"
#include "riffle/model/model_config.h"
#include "riffle/model/stem.h"

namespace riffle {

// One residual block: two 3x3 convolutions (basic) or 1x1, 3x3, 1x1 with four times the channels at
// the end (bottleneck).
class ResidualBlock : public torch::nn::Module {
 public:
  // The first of the two goes through the convolutions, the second around them.
  virtual Fork forward(const Fork& maps, Pass pass) const = 0;
};

// Parameters are named as torchvision names them (conv1.weight, layer2.0.downsample.0.weight, ...),
// so its files load. The last scale of each block starts at residual_gamma. Weights and maps are
// channels last. forward() is safe to call from several threads unless it trains.
class ResNet : public Backbone {
 public:
  ResNet(const ModelConfig& config, const Init& init);

  // Returns [batch, features()] for [batch, 3, height, width] or another ViewLayout.
  torch::Tensor forward(const torch::Tensor& pictures, Pass pass) const override;

  std::int64_t features() const override { return features_; }

  // A network can begin with one block a stage while the others sleep: training skips them, and
  // their parameters do not require a gradient. With a residual_gamma of 0, a block that has never
  // trained is exactly the identity, so waking it changes no output, and evaluation runs all blocks
  // whether they sleep or not. At first all are awake.
  int blocks_to_grow() const override { return static_cast<int>(growth_.size()); }
  // Wakes the first `count` of those; the others sleep. The order: second blocks from the last
  // stage to the first, then third blocks, and so on.
  void set_grown(int count) override;
  int grown() const override { return grown_; }

 private:
  struct Block {
    std::shared_ptr<ResidualBlock> layers;
    bool awake = true;
  };

  std::shared_ptr<StemConv> conv1_;
  std::shared_ptr<BatchNorm> bn1_;
  std::vector<Block> blocks_;
  std::vector<std::size_t> growth_;  // indices of blocks, in the order in which they wake
  int grown_ = 0;
  bool max_pool_;
  std::int64_t features_;
};

}  // namespace riffle

// The part of a network that stays when training is over: pictures to features. Parameters have the
// names that other tools know (torchvision's, timm's).
//
// forward() is safe to call from several threads unless it trains.
#pragma once

#include <cstdint>
#include <memory>

#include <torch/nn/module.h>
#include <torch/types.h>

#include "riffle/model/init.h"
#include "riffle/model/layers.h"
#include "riffle/model/model_config.h"

namespace riffle {

class Backbone : public torch::nn::Module {
 public:
  // Returns [batch, features()] for [batch, 3, height, width].
  virtual torch::Tensor forward(const torch::Tensor& pictures, Pass pass) const = 0;
  virtual std::int64_t features() const = 0;

  // A network may begin with fewer blocks, the others asleep: training skips them, and their
  // parameters do not require a gradient. One that does not grow has none to wake.
  virtual int blocks_to_grow() const { return 0; }
  // Wakes the first `count` of those; the others sleep.
  virtual void set_grown(int) {}
  virtual int grown() const { return 0; }
};

// Returns the network that config.arch names, with weights that `init` decides.
std::shared_ptr<Backbone> make_backbone(const ModelConfig& config, const Init& init);

}  // namespace riffle

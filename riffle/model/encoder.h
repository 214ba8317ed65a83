// What turns pictures into features: the part of a network that probes, embed and curate use,
// whether riffle trained it or not.
#pragma once

#include <cstdint>

#include <torch/nn/module.h>
#include <torch/types.h>

namespace riffle {

class Encoder : public torch::nn::Module {
 public:
  // Returns [n, encoder_dim] float32, in evaluation mode, without gradient. `pictures`: [n, 3,
  // height, width], ImageNet-normalised. Leaves the module as it is, so that several threads may
  // call it while nothing trains.
  virtual torch::Tensor encode(const torch::Tensor& pictures) = 0;

  virtual std::int64_t encoder_dim() const = 0;
};

}  // namespace riffle

// For tests: what batch normalisation takes, and what training through it gives.
#pragma once

#include <cstdint>
#include <vector>

#include <torch/types.h>

#include "riffle/model/batch_norm.h"

namespace riffle {

struct BatchNormInputs {
  BatchNormInputs() {
    norm.momentum = 0.1;
    norm.epsilon = 1e-5;
  }

  BatchNormTensors norm;
  torch::Tensor x;
  torch::Tensor residual;
  torch::Tensor weights_of_loss;
};

// Returns the output `y`, the running statistics after it, and the gradients of all inputs.
inline std::vector<torch::Tensor> values_and_gradients(const BatchNormInputs& in,
                                                       const torch::Tensor& y) {
  (y * in.weights_of_loss).sum().backward();
  std::vector<torch::Tensor> all = {y, in.norm.running_mean, in.norm.running_var, in.x.grad()};
  for (const torch::Tensor& leaf : {in.norm.weight, in.norm.bias, in.residual}) {
    if (leaf.defined()) all.push_back(leaf.grad());
  }
  return all;
}

// Those of our own operation, and of LibTorch's.
inline std::vector<torch::Tensor> trained(const BatchNormInputs& in, std::int64_t views,
                                          bool relu) {
  return values_and_gradients(in, batch_norm(in.norm, in.x, true, views, relu, in.residual));
}
inline std::vector<torch::Tensor> trained_by_torch(const BatchNormInputs& in, std::int64_t views,
                                                   bool relu) {
  return values_and_gradients(in,
                              batch_norm_composed(in.norm, in.x, true, views, relu, in.residual));
}

}  // namespace riffle

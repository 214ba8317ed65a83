// Stochastic gradient descent with momentum and weight decay, as torch defines it:
//   g = gradient + weight_decay * w;  m = momentum * m + g;  w = w - lr * m
// in one fused pass over all parameters.
#pragma once

#include <array>
#include <string>
#include <vector>

#include <torch/nn/module.h>

#include "riffle/tensors/named_tensors.h"
#include "riffle/train/train_config.h"

namespace riffle {

// Updates the parameters of one module but for those of moving averages. The module may move to
// another device before the first step or load_state(), not after. Not thread-safe.
class Sgd {
 public:
  // `predictor`: those parameters of `module` that have a learning rate of their own.
  Sgd(const torch::nn::Module& module, const std::vector<torch::Tensor>& predictor,
      const TrainConfig& config);

  // Makes one update from the gradients that backward() left, at one learning rate for the
  // predictor's parameters and another for the rest. A parameter that does not require a gradient
  // is left alone, and so is its momentum. Drops the gradients, so that the next backward() need
  // not add to them.
  void step(double lr, double predictor_lr);
  // The same with the rates in tensors of one float on the device, as a CUDA graph needs them.
  void step(const torch::Tensor& lr, const torch::Tensor& predictor_lr);

  // Returns the momentum of each parameter, by the parameter's name, as copies on the CPU.
  // load_state() throws Error for names or shapes that are not the parameters'.
  NamedTensors state();
  void load_state(const NamedTensors& state);

 private:
  struct Group {
    std::vector<std::string> names;
    std::vector<torch::Tensor> parameters;
    std::vector<torch::Tensor> momenta;  // allocated when first needed
  };
  template <typename Rate>
  void update(Group& group, const Rate& lr);
  NamedTensors momenta();

  enum { kScheduled, kPredictor };
  std::array<Group, 2> groups_;
  double momentum_;
  double weight_decay_;
};

}  // namespace riffle

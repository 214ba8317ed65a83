// The heads of methods: linear layers with batch norm and ReLU between them.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include <torch/nn/module.h>
#include <torch/types.h>

#include "riffle/model/layers.h"
#include "riffle/model/model_config.h"

namespace riffle {

// Parameters are named as in a sequence of layers that counts its ReLUs: linear layers 0, 3, 6, ...
// and norms 1, 4, 7, ... A linear layer that a norm follows has no bias.
class Mlp : public torch::nn::Module {
 public:
  // What follows the last linear layer: a batch norm without scale and shift, or its bias alone.
  enum class Ending { norm, bias };

  // `widths`: of the input, of each hidden layer, of the output. Requires at least two.
  Mlp(const Init& init, const std::vector<std::int64_t>& widths, Ending ending);

  // [n, widths.front()] to [n, widths.back()], in float32 whatever the type of `rows`.
  torch::Tensor forward(const torch::Tensor& rows, Pass pass) const;

  // The two halves of forward(): all but the norm at the end, in float32, and that norm.
  torch::Tensor before_ending(const torch::Tensor& rows, Pass pass) const;
  torch::Tensor ending(const torch::Tensor& outputs, Pass pass) const;

 private:
  std::vector<std::shared_ptr<Linear>> linears_;
  std::vector<std::shared_ptr<BatchNorm>> norms_;  // one fewer where the ending is a bias
};

// Returns the projector that all methods share: three layers that end with a norm, from the
// encoder's `inputs` features to config.projector_out.
std::shared_ptr<Mlp> make_projector(const ModelConfig& config, std::int64_t inputs,
                                    const Init& init);

}  // namespace riffle

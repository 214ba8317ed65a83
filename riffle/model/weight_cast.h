// Weights in the type that a pass computes in, all of them cast in one go: on a GPU a cast for each
// layer, and one for each gradient on the way back, cost more in launches than in work.
#pragma once

#include <unordered_map>
#include <vector>

#include <torch/types.h>

namespace riffle {

// While one lives, in_type() on this thread takes what it has cast. They may nest.
class WeightCast {
 public:
  WeightCast(const std::vector<torch::Tensor>& weights, torch::ScalarType type);
  ~WeightCast();
  WeightCast(const WeightCast&) = delete;
  WeightCast& operator=(const WeightCast&) = delete;

  // Undefined when it is not one of the weights.
  torch::Tensor find(const torch::Tensor& weight, torch::ScalarType type) const;

 private:
  WeightCast* outer_;
  std::unordered_map<const void*, torch::Tensor> casts_;
};

// The weight in this type, with its gradient flowing back to the original.
torch::Tensor in_type(const torch::Tensor& weight, torch::ScalarType type);

}  // namespace riffle

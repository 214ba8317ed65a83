// Weights in the type that a pass computes in, all cast together: on a GPU a cast for each layer,
// and one for each gradient in the backward pass, cost more in launches than in work.
#pragma once

#include <unordered_map>
#include <vector>

#include <torch/types.h>

namespace riffle {

// While one exists, in_type() on this thread returns what it has cast. Of nested ones the innermost
// counts.
class WeightCast {
 public:
  WeightCast(const std::vector<torch::Tensor>& weights, torch::ScalarType type);
  ~WeightCast();
  WeightCast(const WeightCast&) = delete;
  WeightCast& operator=(const WeightCast&) = delete;

  // Returns the cast, undefined if `weight` is not one of the weights.
  torch::Tensor find(const torch::Tensor& weight, torch::ScalarType type) const;

 private:
  WeightCast* outer_;
  std::unordered_map<const void*, torch::Tensor> casts_;
};

// Returns the weight in this type; its gradient flows back to the original.
torch::Tensor in_type(const torch::Tensor& weight, torch::ScalarType type);

}  // namespace riffle

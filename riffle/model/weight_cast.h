// Weights in the type that a pass computes in, all cast together: on a GPU a cast for each layer,
// and one for each gradient in the backward pass, cost more in launches than in work.
#pragma once

#include <cstdint>
#include <limits>
#include <unordered_map>
#include <vector>

#include <torch/types.h>

namespace riffle {

// While one exists, in_type() on this thread returns what it has cast. Of nested ones the innermost
// counts.
class WeightCast {
 public:
  // `most`: how many numbers are cast together at most, unless one weight has more. All gradients
  // of weights cast together are there at once, when the last of them is. Several casts are made
  // when a weight of theirs is first used: a backward pass goes through what was made last first.
  WeightCast(const std::vector<torch::Tensor>& weights, torch::ScalarType type,
             std::int64_t most = std::numeric_limits<std::int64_t>::max());
  ~WeightCast();
  WeightCast(const WeightCast&) = delete;
  WeightCast& operator=(const WeightCast&) = delete;

  // Returns the cast, undefined if `weight` is not one of the weights.
  torch::Tensor find(const torch::Tensor& weight, torch::ScalarType type);

 private:
  struct Together {
    std::vector<torch::Tensor> weights;
    std::vector<torch::Tensor> casts;  // empty until made
  };
  struct Place {
    std::size_t part;
    std::size_t index;
  };
  void make(Together& part) const;

  WeightCast* outer_;
  const torch::ScalarType type_;
  const bool with_gradient_;
  std::vector<Together> parts_;
  std::unordered_map<const void*, Place> places_;
};

// Returns the weight in this type; its gradient flows back to the original.
torch::Tensor in_type(const torch::Tensor& weight, torch::ScalarType type);

}  // namespace riffle

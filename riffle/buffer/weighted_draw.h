// Draws distinct slots, each with a probability in proportion to a weight.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "riffle/base/random.h"
#include "riffle/buffer/policy.h"

namespace riffle {

// A tree of sums over the weights: making one is O(slots), a draw O(log slots). The same weights
// give the same draws, however they came to be. Not thread-safe.
class WeightedDraw {
 public:
  // Weights by slot, none negative; a slot of weight 0 is never drawn.
  explicit WeightedDraw(std::span<const double> weights);

  // Returns n distinct slots, each drawn in proportion to the weights of those not drawn yet.
  // Requires at least n slots of positive weight.
  std::vector<Slot> draw(std::int64_t n, Random& random);

 private:
  void set(std::size_t leaf, double weight);
  std::size_t leaf_at(double place) const;

  std::size_t leaves_;        // a power of two
  std::vector<double> sums_;  // node i has the children 2 i and 2 i + 1; the root is 1
};

}  // namespace riffle

// What it costs to merge two weighted rows: distance * (w_a w_b / (w_a + w_b))^exponent, the same
// to the last bit on every device.
//
// A weight says how many samples a row stands for. With the exponent 1 the cost is Ward's: by how
// much the squared distances to the nearest row grow when one of the two speaks for both. With 0
// only the distance counts.
//
// Only additions, divisions and square roots are used, which IEEE 754 rounds in one way; so the
// exponent is a number of quarters. Each of them rises with its arguments, hence a cost never falls
// when a weight grows: what the index remembers of a pair stays a lower bound.
#pragma once

#include <cmath>
#include <cstdint>

#include "riffle/buffer/nearest_distance.h"

// Before a function that kernels call too.
#ifdef __CUDACC__
#define RIFFLE_HOST_DEVICE __host__ __device__
#else
#define RIFFLE_HOST_DEVICE
#endif

namespace riffle {

// Returns base^(quarters / 4).
template <typename Real>
RIFFLE_HOST_DEVICE [[gnu::always_inline]] inline Real to_the_quarters(Real base, int quarters) {
  const Real root = std::sqrt(base);
  switch (quarters) {
    case 0:
      return 1;
    case 1:
      return std::sqrt(root);
    case 2:
      return root;
    case 3:
      return root * std::sqrt(root);
    default:
      return base;
  }
}

// Returns (1 / (1 / weight_a + 1 / weight_b))^(quarters / 4). Requires positive weights and
// quarters from 0 to 4.
RIFFLE_HOST_DEVICE inline double merge_factor(double weight_a, double weight_b, int quarters) {
  return to_the_quarters(1.0 / (1.0 / weight_a + 1.0 / weight_b), quarters);
}

// Returns the cost of a pair at this distance, rounded to float32: the float's bits, which are in
// the order of the costs.
DistanceKey merge_cost(DistanceKey distance, double factor);

// Returns a key that no cost of at least `cost`, in units of distance, is below.
DistanceKey cost_at_most(double cost);

// Returns the weight of a row after another was merged into it: the sum, up to the limit. Never
// less than before, so that no cost falls.
RIFFLE_HOST_DEVICE inline double merged_weight(double stayer, double leaver, double limit) {
  const double sum = stayer + leaver;
  const double limited = sum < limit ? sum : limit;
  return limited > stayer ? limited : stayer;
}

// Returns how much of a weight goes over to a row at this distance: all of it to an equal one, less
// in proportion to the distance, nothing from `reach` on, which is in the units of keys; 0: always
// all of it. Divided, not multiplied: nothing that a fused multiply-add could round in another way.
RIFFLE_HOST_DEVICE inline double handed_over(double weight, DistanceKey distance, double reach) {
  if (reach == 0) return weight;
  const double rest = reach - static_cast<double>(distance);
  return rest > 0 ? weight / (reach / rest) : 0;
}

// Returns who of a merged pair stays when chance decides: the older one with a probability in
// proportion to the weights, as a function of the two ages and weights alone.
RIFFLE_HOST_DEVICE inline bool older_stays(std::uint64_t older_age, std::uint64_t newer_age,
                                           double older_weight, double newer_weight) {
  std::uint64_t bits = older_age * 0x9E3779B97F4A7C15u + newer_age;
  bits = (bits ^ bits >> 30) * 0xBF58476D1CE4E5B9u;
  bits = (bits ^ bits >> 27) * 0x94D049BB133111EBu;
  bits ^= bits >> 31;
  const double chance = static_cast<double>(bits >> 11) * 0x1p-53;
  return chance * (older_weight + newer_weight) < older_weight;
}

// A row as the scan of a block sees it.
struct MergeRow {
  float scale;           // one over its length
  float inverse_weight;  // one over its weight
  float reach;           // 1 less what a product may be wrong by
  int quarters;
};

// Turns a row's products with `count` columns into minus the least that each merge may cost:
// (product * row.scale * scales[i] - row.reach) * factor. NaN where the column's scale is NaN.
void merge_values(const MergeRow& row, const float* scales, const float* inverse_weights,
                  std::int64_t count, float* products);

// What the arithmetic of merge_values may be off by: added to the allowed rounding of a product,
// and taken off the cost as a share.
constexpr double kMergeRounding = 0x1p-20;
constexpr double kMergeShare = 0x1p-20;

}  // namespace riffle

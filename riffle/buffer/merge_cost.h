// What it costs to merge two weighted rows: distance * (w_a w_b / (w_a + w_b))^exponent, the same
// to the last bit on every device. With a reach the distance counts as distance / (1 + distance /
// reach): as itself where two rows are alike, and never for more than the reach. What is far from
// everything is then no more precious than what is just unlike everything.
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

// Returns the distance as costs count it; `reach` is in the units of the distance, 0: none.
RIFFLE_HOST_DEVICE inline double counted_distance(double distance, double reach) {
  return reach == 0 ? distance : distance / (1.0 + distance / reach);
}

// Returns the distance that counts as `counted`. Requires counted < reach, if there is one.
RIFFLE_HOST_DEVICE inline double uncounted_distance(double counted, double reach) {
  return reach == 0 ? counted : counted / (1.0 - counted / reach);
}

// Returns the cost of a pair at this distance, rounded to float32: the float's bits, which are in
// the order of the costs. `reach` is in the units of keys.
DistanceKey merge_cost(DistanceKey distance, double factor, double reach);

// Returns a key that no cost of at least `cost`, in units of distance, is below.
DistanceKey cost_at_most(double cost);

// Returns the weight of a row after another at this distance was merged into it. It takes over all
// the weight of an equal one, less in proportion to the distance, and nothing from `reach` on,
// which is in the units of keys (0: always all); and ends with no more than the limit, or with what
// it had: a weight never falls, so that no cost does. Divided, not multiplied: nothing that a fused
// multiply-add could round in another way.
RIFFLE_HOST_DEVICE inline double merged_weight(double stayer, double leaver, DistanceKey distance,
                                               double reach, double limit) {
  const double rest = reach - static_cast<double>(distance);
  const double added = reach == 0 ? leaver : rest > 0 ? leaver / (reach / rest) : 0;
  const double sum = stayer + added;
  const double limited = sum < limit ? sum : limit;
  return limited > stayer ? limited : stayer;
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
  float ceiling;         // 1 less what a product may be wrong by
  float inverse_reach;   // one over the reach; 0: none
  int quarters;
};

// Turns a row's products with `count` columns into minus the least that each merge may cost: minus
// the counted distance of row.ceiling - product * row.scale * scales[i], times the factor. NaN
// where the column's scale is NaN.
void merge_values(const MergeRow& row, const float* scales, const float* inverse_weights,
                  std::int64_t count, float* products);

// What the arithmetic of merge_values may be off by. As a distance, added to the allowed rounding
// of a product: the farther a row, the less a distance changes what it counts for, so the more
// rounding is worth. And as a share, taken off the cost.
inline double merge_rounding(double reach) {
  return 0x1p-20 * (reach == 0 ? 1.0 : 1.0 + 2.0 / reach);
}
constexpr double kMergeShare = 0x1p-20;

}  // namespace riffle

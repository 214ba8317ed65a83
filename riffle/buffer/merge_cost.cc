#include "riffle/buffer/merge_cost.h"

#include <bit>
#include <cmath>

#include "riffle/buffer/widest.h"

namespace riffle {
namespace {

template <typename Real>
[[gnu::always_inline]] inline Real to_the_quarters(Real base, int quarters) {
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

template <int kQuarters>
[[gnu::always_inline]] inline void merge_values_by(const MergeRow& row, const float* scales,
                                                   const float* inverse_weights, std::int64_t count,
                                                   float* products) {
  for (std::int64_t i = 0; i < count; ++i) {
    const float factor =
        to_the_quarters(1.0f / (row.inverse_weight + inverse_weights[i]), kQuarters);
    products[i] = (products[i] * row.scale * scales[i] - row.reach) * factor;
  }
}

}  // namespace

double merge_factor(double weight_a, double weight_b, int quarters) {
  return to_the_quarters(1.0 / (1.0 / weight_a + 1.0 / weight_b), quarters);
}

DistanceKey merge_cost(DistanceKey distance, double factor) {
  return std::bit_cast<DistanceKey>(static_cast<float>(static_cast<double>(distance) * factor));
}

DistanceKey cost_at_most(double cost) {
  if (!(cost > 0)) return 0;
  return std::bit_cast<DistanceKey>(static_cast<float>(cost * (1.0 - kMergeShare) * kKeysPerUnit));
}

bool older_stays(std::uint64_t older_age, std::uint64_t newer_age, double older_weight,
                 double newer_weight) {
  std::uint64_t bits = older_age * 0x9E3779B97F4A7C15u + newer_age;
  bits = (bits ^ bits >> 30) * 0xBF58476D1CE4E5B9u;
  bits = (bits ^ bits >> 27) * 0x94D049BB133111EBu;
  bits ^= bits >> 31;
  const double chance = static_cast<double>(bits >> 11) * 0x1p-53;
  return chance * (older_weight + newer_weight) < older_weight;
}

RIFFLE_WIDEST
void merge_values(const MergeRow& row, const float* scales, const float* inverse_weights,
                  std::int64_t count, float* products) {
  switch (row.quarters) {
    case 0:
      return merge_values_by<0>(row, scales, inverse_weights, count, products);
    case 1:
      return merge_values_by<1>(row, scales, inverse_weights, count, products);
    case 2:
      return merge_values_by<2>(row, scales, inverse_weights, count, products);
    case 3:
      return merge_values_by<3>(row, scales, inverse_weights, count, products);
    default:
      return merge_values_by<4>(row, scales, inverse_weights, count, products);
  }
}

}  // namespace riffle

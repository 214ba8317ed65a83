#include "riffle/buffer/merge_cost.h"

#include <bit>

#include "riffle/buffer/widest.h"

namespace riffle {
namespace {

template <int kQuarters>
[[gnu::always_inline]] inline void merge_values_by(const MergeRow& row, const float* scales,
                                                   const float* inverse_weights, std::int64_t count,
                                                   float* products) {
  for (std::int64_t i = 0; i < count; ++i) {
    const float nearness = products[i] * row.scale * scales[i] - row.ceiling;
    const float damping = 1.0f - nearness * row.inverse_reach;
    const float sum = row.inverse_weight + inverse_weights[i];
    // One division where it is enough: they are most of the time here.
    products[i] = kQuarters == 4 ? nearness / (damping * sum)
                                 : nearness / damping * to_the_quarters(1.0f / sum, kQuarters);
  }
}

}  // namespace

DistanceKey merge_cost(DistanceKey distance, double factor, double reach) {
  const double counted = counted_distance(static_cast<double>(distance), reach);
  return std::bit_cast<DistanceKey>(static_cast<float>(counted * factor));
}

DistanceKey cost_at_most(double cost) {
  if (!(cost > 0)) return 0;
  return std::bit_cast<DistanceKey>(static_cast<float>(cost * (1.0 - kMergeShare) * kKeysPerUnit));
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

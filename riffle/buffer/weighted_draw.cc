#include "riffle/buffer/weighted_draw.h"

#include <algorithm>
#include <bit>

namespace riffle {

WeightedDraw::WeightedDraw(std::span<const double> weights)
    : leaves_(std::bit_ceil(std::max<std::size_t>(weights.size(), 1))), sums_(2 * leaves_, 0.0) {
  std::ranges::copy(weights, sums_.begin() + static_cast<std::ptrdiff_t>(leaves_));
  for (std::size_t node = leaves_ - 1; node > 0; --node) {
    sums_[node] = sums_[2 * node] + sums_[2 * node + 1];
  }
}

void WeightedDraw::set(std::size_t leaf, double weight) {
  std::size_t node = leaves_ + leaf;
  sums_[node] = weight;
  while ((node /= 2) > 0) sums_[node] = sums_[2 * node] + sums_[2 * node + 1];
}

std::size_t WeightedDraw::leaf_at(double place) const {
  std::size_t node = 1;
  while (node < leaves_) {
    node *= 2;
    // A place that rounding has put past the end must not lead where there is nothing.
    if (place < sums_[node] || sums_[node + 1] == 0) continue;
    place -= sums_[node];
    ++node;
  }
  return node - leaves_;
}

std::vector<Slot> WeightedDraw::draw(std::int64_t n, Random& random) {
  std::vector<Slot> drawn;
  std::vector<double> weights;
  for (std::int64_t i = 0; i < n; ++i) {
    const double uniform = static_cast<double>(random.below(std::uint64_t{1} << 53)) * 0x1p-53;
    const std::size_t leaf = leaf_at(uniform * sums_[1]);
    drawn.push_back(static_cast<Slot>(leaf));
    weights.push_back(sums_[leaves_ + leaf]);
    set(leaf, 0);
  }
  for (std::size_t i = 0; i < drawn.size(); ++i) {
    set(static_cast<std::size_t>(drawn[i]), weights[i]);
  }
  return drawn;
}

}  // namespace riffle

#include "riffle/buffer/reservoir.h"

#include <cmath>
#include <numeric>

#include <ATen/ATen.h>
#include <gmock/gmock.h>

namespace riffle {
namespace {

using Slots = std::vector<Slot>;

// Arrivals held after all of them came in batches; slots are arrival numbers, never used again.
std::vector<bool> kept(std::uint64_t seed, int arrivals, int batch, int capacity) {
  Reservoir reservoir(seed);
  std::vector<bool> held(static_cast<std::size_t>(arrivals), false);
  int size = 0;
  for (int first = 0; first < arrivals; first += batch) {
    Slots slots(static_cast<std::size_t>(std::min(batch, arrivals - first)));
    std::iota(slots.begin(), slots.end(), first);
    reservoir.inserted(slots, {});
    for (const Slot slot : slots) held[static_cast<std::size_t>(slot)] = true;
    size += static_cast<int>(slots.size());
    if (size > capacity) {
      for (const Slot slot : reservoir.evict(size - capacity)) {
        held[static_cast<std::size_t>(slot)] = false;
      }
      size = capacity;
    }
  }
  return held;
}

TEST(Reservoir, EveryArrivalIsKeptWithTheSameProbability) {
  constexpr int kSeeds = 4000, kArrivals = 50, kBatch = 4, kCapacity = 10;
  std::vector<int> counts(kArrivals, 0);
  for (int seed = 0; seed < kSeeds; ++seed) {
    const auto held = kept(static_cast<std::uint64_t>(seed), kArrivals, kBatch, kCapacity);
    EXPECT_EQ(std::count(held.begin(), held.end(), true), kCapacity);
    for (std::size_t i = 0; i < held.size(); ++i) counts[i] += held[i];
  }
  const double p = static_cast<double>(kCapacity) / kArrivals;
  const double sigma = std::sqrt(kSeeds * p * (1 - p));
  double chi = 0;
  for (const int count : counts) {
    EXPECT_NEAR(count, kSeeds * p, 4.5 * sigma);
    chi += std::pow((count - kSeeds * p) / sigma, 2);
  }
  // About kArrivals in the mean, with a standard deviation of about sqrt(2 * kArrivals) = 10.
  EXPECT_LT(chi, kArrivals + 45);
  EXPECT_GT(chi, kArrivals - 35);
}

TEST(Reservoir, WhatIsKeptDoesNotDependOnTheBatchSize) {
  EXPECT_EQ(kept(3, 1000, 1, 64), kept(3, 1000, 50, 64));
  EXPECT_NE(kept(3, 1000, 50, 64), kept(4, 1000, 50, 64));
}

TEST(Reservoir, RestoredReservoirDecidesTheSame) {
  Reservoir first(11);
  Slots slots(40);
  std::iota(slots.begin(), slots.end(), 0);
  first.inserted(slots, {});
  auto leaving = first.evict(15);
  Reservoir second(11);
  second.restore(first.save());
  first.inserted(leaving, {});
  second.inserted(leaving, {});
  EXPECT_EQ(first.evict(40), second.evict(40));
  EXPECT_EQ(second.stats(false).evictions.at("random"), 55);
}

}  // namespace
}  // namespace riffle

#include "riffle/buffer/merge.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "riffle/base/error.h"
#include "riffle/base/random.h"
#include "riffle/base/text.h"
#include "riffle/buffer/minred.h"
#include "riffle/buffer/testing/angles.h"

namespace riffle {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::ThrowsMessage;
using Slots = std::vector<Slot>;

BufferConfig merge_config(StayRule stays = StayRule::heavier) {
  BufferConfig config;
  config.policy = "merge";
  config.stays = stays;
  config.tie = TieRule::newer;
  config.merge_reach = 0;  // whole weights, which are easy to follow
  config.feature_type = FeatureType::float32;
  return config;
}

Merge make_merge(const BufferConfig& config = merge_config(), std::int64_t slots = 16) {
  return Merge({config, slots, /*feature_dim=*/2, /*seed=*/0, at::kCPU});
}

TEST(Merge, TheHeavierOfAPairStaysAndTakesTheWeightOver) {
  auto policy = make_merge();
  policy.inserted(Slots{0, 1, 2, 3, 4, 5}, angles({0, 1, 2.5, 100, 200, 300}));
  EXPECT_THAT(policy.evict(1), ElementsAre(1)) << "of equal weights the newer leaves";
  EXPECT_EQ(policy.weights()[0], 2);
  EXPECT_THAT(policy.evict(1), ElementsAre(2));
  EXPECT_EQ(policy.weights()[0], 3);
  policy.inserted(Slots{1}, angles({1}));
  EXPECT_THAT(policy.evict(1), ElementsAre(1));
  EXPECT_EQ(policy.weights()[0], 4);
  EXPECT_EQ(policy.stats(false).evictions.at("merged"), 3);
}

TEST(Merge, LoneSamplesGoBeforeWhatStandsForMany) {
  for (const double exponent : {0.0, 1.0}) {
    BufferConfig config = merge_config();
    config.merge_exponent = exponent;
    auto policy = make_merge(config);
    policy.inserted(Slots{0, 1}, angles({0, 14}));
    for (int repeat = 0; repeat < 17; ++repeat) {
      policy.inserted(Slots{2, 3}, angles({0, 14}));
      EXPECT_THAT(policy.evict(2), ElementsAre(2, 3));
    }
    EXPECT_EQ(policy.weights()[0], 16) << "the default limit";
    // Samples 40 degrees apart from one another, as junk is.
    policy.inserted(Slots{4, 5, 6, 7, 8}, angles({90, 130, 170, 210, 250}));
    const Slot first = policy.evict(1).front();
    EXPECT_EQ(first >= 4, exponent == 1) << "by distance alone, as in MinRed, one of the two goes";
  }
}

TEST(Merge, WeightsGrowUpToTheLimit) {
  BufferConfig config = merge_config();
  config.weight_limit = 2.5;
  auto policy = make_merge(config);
  policy.inserted(Slots{0, 1, 2, 3, 4}, angles({0, 0, 0, 0, 90}));
  policy.evict(1);
  EXPECT_EQ(policy.weights()[0], 2);
  policy.evict(2);
  EXPECT_EQ(policy.weights()[0], 2.5);
}

TEST(Merge, AWeightGoesOverInPartTheLessTheFartherAway) {
  BufferConfig config = merge_config();
  config.merge_reach = 0.5;
  for (const double degrees : {0.0, 30.0, 50.0, 60.0, 90.0}) {
    auto policy = make_merge(config);
    policy.inserted(Slots{0, 1}, angles({0, degrees}));
    const Slot stayed = 1 - policy.evict(1).front();
    const double distance = 1 - std::cos(degrees * std::numbers::pi / 180);
    EXPECT_NEAR(policy.weights()[static_cast<std::size_t>(stayed)],
                1 + std::max(0.0, 1 - distance / 0.5), 1e-6)
        << degrees;
  }
}

TEST(Merge, WhatIsFarFromEverythingIsNoMorePreciousThanTheReach) {
  for (const double reach : {0.0, 0.5}) {
    BufferConfig config = merge_config();
    config.merge_reach = reach;
    auto policy = make_merge(config);
    policy.inserted(Slots{0, 1}, angles({0, 26}));
    for (int repeat = 0; repeat < 3; ++repeat) {
      policy.inserted(Slots{2, 3}, angles({0, 26}));
      EXPECT_THAT(policy.evict(2), ElementsAre(2, 3));
    }
    ASSERT_EQ(policy.weights()[0], 4);
    // Two that stand for four each, at a distance of 0.1, and two lone ones at 0.9.
    policy.inserted(Slots{4, 5}, angles({150, 234}));
    EXPECT_EQ(policy.evict(1).front() >= 4, reach > 0) << reach;
  }
}

TEST(Merge, WithALimitOfOneItIsMinRed) {
  BufferConfig config = merge_config();
  config.weight_limit = 1;
  auto merge = make_merge(config);
  MinRed minred({config, /*slots=*/16, /*feature_dim=*/2, /*seed=*/0, at::kCPU});
  Random random(6, Purpose("merge test"), 0);
  Slots free{0, 1, 2, 3, 4, 5, 6, 7};
  for (int i = 0; i < 30; ++i) {
    std::vector<double> degrees;
    for (std::size_t s = 0; s < free.size(); ++s) degrees.push_back(360.0 * random.uniform());
    merge.inserted(free, angles(degrees));
    minred.inserted(free, angles(degrees));
    free = merge.evict(3);
    ASSERT_EQ(minred.evict(3), free);
  }
}

TEST(Merge, ChanceKeepsAMemberInProportionToItsWeight) {
  // 400 histories: a sample that stands for three meets a new one.
  int kept = 0;
  constexpr int kHistories = 400;
  for (int history = 0; history < kHistories; ++history) {
    auto policy = make_merge(merge_config(StayRule::drawn));
    for (int i = 0; i < history; ++i) {
      policy.inserted(Slots{7}, {});
      policy.evict(1);
    }
    policy.inserted(Slots{0, 1, 2, 3, 4, 5}, angles({0, 0, 0, 90, 180, 270}));
    policy.evict(2);
    const Slot three = policy.weights()[0] == 3 ? 0 : policy.weights()[1] == 3 ? 1 : 2;
    ASSERT_EQ(policy.weights()[static_cast<std::size_t>(three)], 3);
    const Slot one = three == 0 ? 1 : 0;
    policy.inserted(Slots{one}, angles({0}));
    const Slot left = policy.evict(1).front();
    kept += left == one;
    EXPECT_EQ(policy.weights()[static_cast<std::size_t>(left == one ? three : one)], 4);
  }
  EXPECT_NEAR(kept / static_cast<double>(kHistories), 0.75,
              4 * std::sqrt(0.75 * 0.25 / kHistories));
}

TEST(Merge, WeightsFadeByHalfInAHalfLife) {
  BufferConfig config = merge_config();
  config.half_life = 8;
  auto policy = make_merge(config, 32);
  Slots slots;
  std::vector<double> degrees;
  for (Slot slot = 0; slot < 24; ++slot) {
    slots.push_back(slot);
    degrees.push_back(15.0 * static_cast<double>(slot));
  }
  for (std::size_t at = 0; at < slots.size(); at += 4) {
    const auto part = std::span(slots).subspan(at, 4);
    const std::vector<double> here(degrees.begin() + static_cast<std::ptrdiff_t>(at),
                                   degrees.begin() + static_cast<std::ptrdiff_t>(at) + 4);
    policy.inserted(part, angles(here));
  }
  const auto weights = policy.weights();
  for (std::size_t slot = 0; slot + 8 < 24; ++slot) {
    EXPECT_NEAR(weights[slot + 8] / weights[slot], 2.0, 1e-12) << slot;
  }
}

TEST(Merge, AHalfLifeTooShortForItsBatchesIsRefusedWithTheFirst) {
  // 1,000 halvings in a batch are the most, wherever in the batch they fall.
  BufferConfig config = merge_config();
  for (const std::int64_t half_life : {1, 2, 3}) {
    config.half_life = half_life;
    const auto batch_of = [](std::int64_t count) {
      Slots slots;
      for (Slot slot = 0; slot < count; ++slot) slots.push_back(slot);
      return slots;
    };
    const std::int64_t most = 1000 * half_life;
    auto policy = make_merge(config, most + 1);
    EXPECT_THAT([&] { policy.inserted(batch_of(most + 1), {}); },
                ThrowsMessage<Error>(testing::AllOf(HasSubstr("buffer.half_life"),
                                                    HasSubstr(cat("at least ", half_life + 1)))));
    EXPECT_TRUE(find_integers(policy.save(), "slots").empty());
    for (int batch = 0; batch < 5; ++batch) {
      const Slots slots = batch_of(most);
      policy.inserted(slots, {});
      for (const Slot slot : slots) {
        const double weight = policy.weights()[static_cast<std::size_t>(slot)];
        ASSERT_TRUE(weight >= NearestIndex::kLeastWeight && weight <= 2) << weight;
      }
      EXPECT_THAT(policy.evict(most), testing::ElementsAreArray(slots));
      policy.inserted(Slots{0}, {});  // so that the next one begins elsewhere in a half-life
      policy.evict(1);
    }
  }
}

TEST(Merge, OfEqualSamplesOneStaysForAll) {
  for (const StayRule stays : {StayRule::heavier, StayRule::drawn}) {
    BufferConfig config = merge_config(stays);
    config.merge_reach = 0.5;
    auto policy = make_merge(config);
    policy.inserted(Slots{0, 1, 2, 3}, angles({40, 40, 40, 40}));
    for (int batch = 0; batch < 20; ++batch) {
      Slots free;
      for (Slot slot = 0; slot < 16 && free.size() < 4; ++slot) {
        const auto held = find_integers(policy.save(), "slots");
        if (std::ranges::find(held, slot) == held.end()) free.push_back(slot);
      }
      policy.inserted(free, angles({40, 40, 40, 40}));
      EXPECT_EQ(policy.evict(4).size(), 4u);
      double total = 0;
      for (const Slot slot : find_integers(policy.save(), "slots")) {
        const double weight = policy.weights()[static_cast<std::size_t>(slot)];
        EXPECT_TRUE(weight >= 1 && weight <= 16) << weight;
        total += weight;
      }
      if (batch >= 2) continue;
      EXPECT_EQ(total, 4 * (batch + 2)) << "while none is at the limit";
    }
  }
}

TEST(Merge, SamplesWithNothingInCommonTakeNothingOver) {
  // Junk alone, at a distance of 1 or more from one another.
  BufferConfig config = merge_config(StayRule::drawn);
  config.merge_reach = 0.5;
  auto policy = make_merge(config);
  policy.inserted(Slots{0, 1, 2, 3}, angles({0, 90, 180, 270}));
  policy.evict(2);
  EXPECT_EQ(policy.stats(false).evictions.at("merged"), 2);
  for (const Slot slot : find_integers(policy.save(), "slots")) {
    EXPECT_EQ(policy.weights()[static_cast<std::size_t>(slot)], 1);
  }
}

TEST(Merge, LetsGoOfAllButOneAndThenOfThatToo) {
  auto policy = make_merge();
  policy.inserted(Slots{0, 1, 2, 3}, angles({0, 10, 100, 200}));
  EXPECT_EQ(policy.evict(2).size(), 2u) << "half of them, as pairs";
  EXPECT_EQ(policy.stats(false).evictions.at("merged"), 2);
  const auto held = find_integers(policy.save(), "slots");
  EXPECT_THAT(policy.evict(2), testing::UnorderedElementsAreArray(held)) << "the oldest, not pairs";
  EXPECT_EQ(policy.stats(false).evictions.at("oldest"), 2);
  EXPECT_EQ(policy.stats(false).with_feature, 0);
  policy.inserted(Slots{3}, angles({7}));
  EXPECT_EQ(policy.weights()[3], 1);
  EXPECT_THAT(policy.evict(1), ElementsAre(3));
}

TEST(Merge, SamplesWithoutAFeatureKeepTheirWeightUntilTheyHaveOne) {
  auto policy = make_merge();
  policy.inserted(Slots{0, 1, 2, 3}, angles({0, 0.5, 100, 200}));
  policy.evict(1);
  EXPECT_EQ(policy.weights()[0], 2);
  policy.inserted(Slots{1}, {});
  EXPECT_EQ(policy.weights()[1], 1) << "not what the slot's last sample had";
  policy.tracked(Slots{1}, angles({0.2}));
  EXPECT_THAT(policy.evict(1), ElementsAre(1));
  EXPECT_EQ(policy.weights()[0], 3);
}

TEST(Merge, ARestoredPolicyDecidesTheSame) {
  for (const std::int64_t half_life : {0, 10}) {
    BufferConfig config = merge_config(StayRule::drawn);
    config.half_life = half_life;
    auto policy = make_merge(config);
    Random random(5, Purpose("merge test"), 0);
    const auto step = [&random](Merge& merge, const Slots& slots) {
      std::vector<double> degrees;
      for (std::size_t i = 0; i < slots.size(); ++i) degrees.push_back(360.0 * random.uniform());
      merge.inserted(slots, angles(degrees));
      return merge.evict(static_cast<std::int64_t>(slots.size()));
    };
    policy.inserted(Slots{0, 1, 2, 3, 4, 5, 6, 7}, angles({0, 5, 90, 95, 180, 190, 270, 300}));
    Slots free = {8, 9};
    for (int i = 0; i < 10; ++i) free = step(policy, free);
    auto restored = make_merge(config);
    restored.restore(policy.save());
    Random again = random;
    Slots after, after_restored;
    Slots free_restored = free;
    for (int i = 0; i < 10; ++i) {
      free = step(policy, free);
      after.insert(after.end(), free.begin(), free.end());
    }
    random = again;
    for (int i = 0; i < 10; ++i) {
      free_restored = step(restored, free_restored);
      after_restored.insert(after_restored.end(), free_restored.begin(), free_restored.end());
    }
    EXPECT_EQ(after, after_restored);
    EXPECT_TRUE(std::ranges::equal(policy.weights(), restored.weights()));
  }
}

// On a GPU too, where most refusals come later: halving waits for them.
TEST(Merge, ARefusedBatchChangesNothingThoughAHalvingIsDue) {
  for (const at::Device device : {at::Device(at::kCPU), at::Device(at::kCUDA)}) {
    if (device.is_cuda() && !at::hasCUDA()) continue;
    BufferConfig config = merge_config();
    config.half_life = 4;
    Merge policy({config, 16, /*feature_dim=*/2, /*seed=*/0, device});
    policy.inserted(Slots{0, 1, 2}, angles({0, 60, 120}));
    EXPECT_THROW(policy.inserted(Slots{3, 4}, angles({200, std::nan("")})), Error);
    EXPECT_EQ(policy.stats(false).with_feature, 3);
    EXPECT_EQ(find_integers(policy.save(), "slots"), (Slots{0, 1, 2}));
    const double before = policy.weights()[0];
    policy.inserted(Slots{3, 4}, angles({200, 250}));
    EXPECT_EQ(policy.weights()[0], before / 2);
    EXPECT_EQ(policy.stats(false).with_feature, 5);
  }
}

TEST(Merge, StatesThatCountTheirHalvingsAreReadToo) {
  BufferConfig config = merge_config();
  config.half_life = 2;
  auto policy = make_merge(config);
  policy.inserted(Slots{0, 1, 2}, angles({0, 60, 120}));
  auto state = policy.save();
  state.emplace_back("halvings", integers_tensor(std::vector<std::int64_t>{1}));
  auto restored = make_merge(config);
  restored.restore(state);
  for (Merge* each : {&policy, &restored}) each->inserted(Slots{3, 4}, angles({200, 250}));
  EXPECT_TRUE(std::ranges::equal(policy.weights(), restored.weights()));
}

TEST(Merge, RefusesAStateThatHoldsASampleTwice) {
  auto policy = make_merge();
  policy.inserted(Slots{0, 1}, angles({0, 60}));
  auto state = policy.save();
  for (auto& [name, tensor] : state) {
    if (name == "arrivals") tensor = at::zeros_like(tensor);
  }
  EXPECT_THAT([&] { make_merge().restore(state); },
              ThrowsMessage<Error>(HasSubstr("holds sample 0 twice")));
}

TEST(Merge, RefusesDamagedWeights) {
  auto policy = make_merge();
  policy.inserted(Slots{0, 1}, angles({0, 60}));
  for (const double bad : {0.0, -1.0, std::nan(""), HUGE_VAL}) {
    auto state = policy.save();
    for (auto& [name, tensor] : state) {
      if (name == "index.weights") tensor = at::full_like(tensor, bad);
    }
    EXPECT_THAT([&] { make_merge().restore(state); }, ThrowsMessage<Error>(HasSubstr("weights")));
  }
}

}  // namespace
}  // namespace riffle

#include "riffle/buffer/minred.h"

#include <cmath>

#include <gmock/gmock.h>
#include <torch/types.h>

#include "riffle/base/error.h"
#include "riffle/buffer/testing/angles.h"

namespace riffle {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::ThrowsMessage;
using testing::UnorderedElementsAre;
using Slots = std::vector<Slot>;

MinRed make_minred(BufferConfig config = {}, std::int64_t slots = 16) {
  return MinRed({config, slots, /*feature_dim=*/2, /*seed=*/0, at::kCPU});
}

TEST(MinRed, DuplicatesLeaveFirstAndTheOlderOfEachPair) {
  auto policy = make_minred();
  policy.inserted(Slots{0, 1, 2, 3, 4, 5, 6, 7}, angles({0, 90, 1, 200, 91.5, 270, 140, 310}));
  // 0 and 1 degrees are nearest, then 90 and 91.5.
  EXPECT_THAT(policy.evict(2), ElementsAre(0, 1));
  EXPECT_EQ(policy.stats(false).evictions.at("redundant"), 2);
  EXPECT_EQ(policy.stats(false).with_feature, 6);
}

TEST(MinRed, DistancesAreThoseOfWhoIsLeft) {
  auto policy = make_minred();
  // Of three in a row the outer two are far once the middle one is gone.
  policy.inserted(Slots{0, 1, 2, 3, 4}, angles({10, 0, 20.5, 180, 195}));
  EXPECT_THAT(policy.evict(1), ElementsAre(0));
  EXPECT_THAT(policy.evict(1), ElementsAre(3));
}

TEST(MinRed, FeaturesOfZerosAreRedundantOfOneAnother) {
  auto policy = make_minred();
  policy.inserted(Slots{0, 1, 2, 3}, angles({100, 200, 280, 340}));
  policy.inserted(Slots{4, 5, 6}, torch::zeros({3, 2}));
  policy.tracked(Slots{4}, torch::zeros({1, 2}));
  EXPECT_THAT(policy.evict(2), UnorderedElementsAre(4, 5));
}

TEST(MinRed, AgeCountsForTheTieNotTheSlot) {
  for (const auto tie : {TieRule::older, TieRule::newer}) {
    BufferConfig config;
    config.tie = tie;
    auto policy = make_minred(config);
    policy.inserted(Slots{9, 3}, angles({0, 100}));
    policy.inserted(Slots{5, 1}, angles({0.5, 200}));
    EXPECT_THAT(policy.evict(1), ElementsAre(tie == TieRule::older ? 9 : 5));
  }
}

TEST(MinRed, SamplesWithoutAFeatureTakeNoPart) {
  auto policy = make_minred();
  policy.inserted(Slots{0, 1}, {});
  policy.inserted(Slots{2, 3, 4, 5}, {});
  policy.tracked(Slots{2, 3, 4, 5}, angles({0, 60, 61, 180}));
  EXPECT_EQ(policy.stats(false).with_feature, 4);
  EXPECT_THAT(policy.evict(2), UnorderedElementsAre(3, testing::AnyOf(2, 4)));
}

TEST(MinRed, NewSamplesWithFeaturesMayLeaveAtOnce) {
  BufferConfig config;
  config.tie = TieRule::newer;
  auto policy = make_minred(config);
  policy.inserted(Slots{0, 1, 2}, angles({0, 120, 240}));
  policy.inserted(Slots{3, 4}, angles({1, 60}));
  EXPECT_THAT(policy.evict(1), ElementsAre(3));
}

TEST(MinRed, TheFirstFeatureIsTakenWholeAndLaterOnesAreBlended) {
  BufferConfig config;
  config.momentum = 0.5;
  config.feature_type = FeatureType::float32;
  auto policy = make_minred(config);
  policy.inserted(Slots{0, 1, 2, 3}, {});
  policy.tracked(Slots{0, 1, 2, 3}, angles({0, 44, 150, 250}));
  policy.tracked(Slots{0}, angles({90}));  // now at 45, a degree from slot 1
  const auto nearest = policy.stats(true).nearest;
  ASSERT_EQ(nearest.size(), 11u);
  EXPECT_NEAR(nearest.front(), 1 - std::cos(1 * M_PI / 180), 1e-6);
  EXPECT_NEAR(nearest.back(), 1 - std::cos(100 * M_PI / 180), 1e-6);
  EXPECT_THAT(policy.evict(1), ElementsAre(0));
}

TEST(MinRed, MomentumZeroTakesTheNewestFeature) {
  BufferConfig config;
  config.momentum = 0;
  auto policy = make_minred(config);
  policy.inserted(Slots{0, 1, 2}, angles({0, 100, 200}));
  policy.tracked(Slots{1}, angles({201}));
  EXPECT_THAT(policy.evict(1), ElementsAre(1));
}

TEST(MinRed, OldestOfAllLeaveWhenFewerThanTwoFeaturesForEach) {
  auto policy = make_minred();
  policy.inserted(Slots{7, 0, 1, 2, 3, 4}, {});
  policy.tracked(Slots{1, 2, 3}, angles({0, 1, 90}));
  EXPECT_THAT(policy.evict(2), ElementsAre(7, 0));  // 3 < 2 * 2
  EXPECT_THAT(policy.evict(1), ElementsAre(1));     // 3 >= 2 * 1
  EXPECT_THAT(policy.evict(2), ElementsAre(2, 3));  // oldest again, features or not
  const auto stats = policy.stats(true);
  EXPECT_EQ(stats.evictions.at("oldest"), 4);
  EXPECT_EQ(stats.evictions.at("redundant"), 1);
  EXPECT_EQ(stats.with_feature, 0);
  EXPECT_THAT(stats.nearest, IsEmpty());
}

TEST(MinRed, SamplesDrawnTooOftenLeaveFirstOldestFirst) {
  BufferConfig config;
  config.draw_limit = 2;
  auto policy = make_minred(config);
  policy.inserted(Slots{5, 4, 3, 2, 1, 0}, angles({0, 60, 120, 180, 240, 241}));
  for (int draws = 0; draws < 2; ++draws) policy.drawn(Slots{0, 1, 2, 3, 4, 5});
  EXPECT_THAT(policy.evict(1), ElementsAre(1));  // nobody above the limit yet
  policy.drawn(Slots{2, 4});
  EXPECT_THAT(policy.evict(3),
              ElementsAre(4, 2, 5));  // then 5, 3 and 0 remain, of which the oldest
  const auto evictions = policy.stats(false).evictions;
  EXPECT_EQ(evictions.at("draw_limit"), 2);
  EXPECT_EQ(evictions.at("redundant"), 2);
}

TEST(MinRed, AReusedSlotStartsWithoutDrawsAndFeature) {
  BufferConfig config;
  config.draw_limit = 1;
  auto policy = make_minred(config);
  policy.inserted(Slots{0, 1}, angles({0, 90}));
  policy.drawn(Slots{0});
  policy.drawn(Slots{0});
  EXPECT_THAT(policy.evict(1), ElementsAre(0));
  policy.inserted(Slots{0}, {});
  EXPECT_EQ(policy.stats(false).with_feature, 1);
  policy.drawn(Slots{0});
  EXPECT_THAT(policy.evict(1), ElementsAre(1));
}

TEST(MinRed, BadFeaturesAreRefusedAndChangeNothing) {
  auto policy = make_minred();
  policy.inserted(Slots{0, 1, 2, 3}, angles({0, 60, 120, 180}));
  const auto bad = torch::full({1, 2}, NAN);
  EXPECT_THAT([&] { policy.inserted(Slots{6}, bad); }, ThrowsMessage<Error>(HasSubstr("slot 6")));
  EXPECT_THAT([&] { policy.tracked(Slots{2}, bad); }, ThrowsMessage<Error>(HasSubstr("slot 2")));
  EXPECT_THROW(policy.tracked(Slots{2}, torch::ones({1, 3})), Error);
  policy.inserted(Slots{6}, angles({181}));
  EXPECT_EQ(policy.stats(false).with_feature, 5);
  EXPECT_THAT(policy.evict(1), ElementsAre(3));
}

TEST(MinRed, RestoreRefusesDamagedState) {
  auto policy = make_minred();
  policy.inserted(Slots{0, 1}, angles({0, 60}));
  auto state = policy.save();
  for (auto& [name, tensor] : state) {
    if (name == "slots") tensor = torch::tensor({0, 99}, torch::kLong);
  }
  EXPECT_THAT([&] { make_minred().restore(state); }, ThrowsMessage<Error>(HasSubstr("99")));
  EXPECT_THAT([&] { make_minred().restore({}); }, ThrowsMessage<Error>(HasSubstr("missing")));
}

}  // namespace
}  // namespace riffle

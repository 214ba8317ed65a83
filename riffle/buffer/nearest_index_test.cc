#include "riffle/buffer/nearest_index.h"

#include <cmath>
#include <stdexcept>

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "riffle/base/error.h"
#include "riffle/buffer/testing/nearest_index.h"

namespace riffle {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using NearestIndexTest = OnEachDevice;

TEST_P(NearestIndexTest, TheOlderOrTheNewerOfTheNearestPairLeaves) {
  for (const TieRule tie : {TieRule::older, TieRule::newer}) {
    NearestIndexConfig made = config(4, 2);
    made.tie = tie;
    const auto index = NearestIndex::create(made);
    index->set(Slots{0, 1, 2}, Ages{20, 10, 0}, matrix({{1, 0}, {1, 0.1f}, {0, 1}}));
    EXPECT_THAT(slots_of(index->take_most_redundant(1)),
                ElementsAre(tie == TieRule::older ? 1 : 0));
  }
}

TEST_P(NearestIndexTest, TheLastRowLeavesWithoutAPair) {
  const auto index = NearestIndex::create(config(2, 3));
  index->set(Slots{1}, Ages{0}, matrix({{1, 2, 3}}));
  EXPECT_THAT(slots_of(index->take_most_redundant(1)), ElementsAre(1));
  EXPECT_EQ(index->size(), 0);
  EXPECT_THROW(index->take_most_redundant(1), std::logic_error);
}

TEST_P(NearestIndexTest, BlendsNormalizedDirections) {
  const auto index = NearestIndex::create(config(3, 2));
  index->set(Slots{0, 1}, Ages{0, 1}, matrix({{5, 0}, {1, 0}}));
  index->blend(Slots{0, 1, 2}, Ages{0, 1, 2}, matrix({{0, 0.1f}, {-3, 0}, {0, 2}}), 0.5);
  const auto rows = stored_rows(*index, {0, 1, 2});
  EXPECT_NEAR(rows[0][0], std::sqrt(0.5), 1e-6);
  EXPECT_NEAR(rows[0][1], std::sqrt(0.5), 1e-6);
  EXPECT_EQ(rows[1][0], -1.0) << "opposite directions cancel: the new one stays";
  EXPECT_EQ(rows[2][1], 1.0) << "a slot without a row takes the feature";
}

TEST_P(NearestIndexTest, RefusesBadFeaturesAndStaysAsItWas) {
  const float nan = std::nanf("");
  const std::vector<std::vector<float>> bad = {{0, 0, 0}, {1, nan, 0}, {1, 0, INFINITY}};
  for (const auto& feature : bad) {
    const auto index = NearestIndex::create(config(9, 3));
    index->set(Slots{0, 1, 2}, Ages{0, 1, 2}, matrix({{1, 0, 0}, {0, 1, 0}, {0, 1, 0.5f}}));
    const auto before = index->save();
    const auto spoil = [&] {
      index->blend(Slots{1, 7}, Ages{1, 3}, matrix({{3, 2, 1}, feature}), 0.5);
      index->check();
    };
    try {
      spoil();
      FAIL() << "accepted";
    } catch (const Error& error) {
      EXPECT_THAT(error.what(), HasSubstr("slot 7"));
    }
    EXPECT_EQ(index->size(), 3);
    EXPECT_FALSE(index->contains(7));
    const auto after = index->save();
    for (std::size_t i = 0; i < before.size(); ++i) {
      if (before[i].first == "changes" || before[i].first == "pending") continue;
      EXPECT_TRUE(before[i].second.equal(after[i].second)) << before[i].first;
    }
    EXPECT_THAT(slots_of(index->take_most_redundant(1)), ElementsAre(1));
  }
}

TEST_P(NearestIndexTest, RefusesAnotherWidthAndNamesTheSlot) {
  const auto index = NearestIndex::create(config(9, 3));
  try {
    index->set(Slots{5}, Ages{0}, at::ones({1, 4}));
    FAIL() << "accepted";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("slot 5"));
    EXPECT_THAT(error.what(), HasSubstr("3"));
  }
  EXPECT_EQ(index->size(), 0);
}

TEST_P(NearestIndexTest, WrongUseIsALogicError) {
  const auto index = NearestIndex::create(config(3, 2));
  EXPECT_THROW(index->set(Slots{1, 1}, Ages{0, 1}, at::ones({2, 2})), std::logic_error);
  EXPECT_THROW(index->set(Slots{3}, Ages{0}, at::ones({1, 2})), std::logic_error);
  EXPECT_THROW(index->erase(Slots{0}), std::logic_error);
  EXPECT_THROW(index->contains(-1), std::logic_error);
}

TEST_P(NearestIndexTest, RefusesTheStateOfAnotherIndex) {
  const auto small = NearestIndex::create(config(3, 2));
  const auto large = NearestIndex::create(config(4, 2));
  EXPECT_THROW(large->restore(small->save()), Error);
  NearestIndexConfig half = config(3, 2);
  half.type = FeatureType::float16;
  EXPECT_THROW(NearestIndex::create(half)->restore(small->save()), Error);
}

TEST_P(NearestIndexTest, TellsItsMemoryInAdvance) {
  NearestIndexConfig made = config(1000, 100);
  const std::uint64_t full = NearestIndex::bytes(made);
  EXPECT_GT(full, 1000u * 100 * 4);
  made.type = FeatureType::float16;
  EXPECT_LT(NearestIndex::bytes(made), full);
}

TEST(NearestIndex, RefusesNumbersThatMakeNoSense) {
  const auto made = [](std::int64_t slots, std::int64_t dim, std::int64_t neighbours) {
    NearestIndexConfig config;
    config.slots = slots;
    config.dim = dim;
    config.neighbours = neighbours;
    return config;
  };
  EXPECT_THROW(NearestIndex::create(made(0, 2, 8)), Error);
  EXPECT_THROW(NearestIndex::create(made(2, 0, 8)), Error);
  EXPECT_THROW(NearestIndex::create(made(2, 2, 17)), Error);
}

INSTANTIATE_TEST_SUITE_P(Devices, NearestIndexTest, ::testing::Values("cpu", "cuda"),
                         [](const auto& device) { return device.param; });

}  // namespace
}  // namespace riffle

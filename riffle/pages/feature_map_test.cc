#include "riffle/pages/feature_map.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/types.h>

namespace riffle {
namespace {

// Two groups of rows far apart, each spread a little in another direction; row 5 has no feature.
at::Tensor two_groups() {
  at::Tensor rows = torch::zeros({20, 8});
  for (int i = 0; i < 20; ++i) {
    rows[i][i % 2] = 1;
    rows[i][2] = 0.01 * i;
  }
  rows[5].zero_();
  return rows;
}

TEST(FeatureMap, GroupsAreApartAndRowsWithoutAFeatureAreNotOnIt) {
  const auto points = feature_map(two_groups(), 100);
  ASSERT_EQ(points.size(), 19u);
  double even = points[0].x;
  for (const auto& point : points) {
    EXPECT_NE(point.sample, 5u);
    EXPECT_GE(point.x, 0);
    EXPECT_LE(point.x, 1);
    EXPECT_GE(point.y, 0);
    EXPECT_LE(point.y, 1);
    if (point.sample % 2 == 0) {
      EXPECT_NEAR(point.x, even, 0.2) << point.sample;
    } else {
      EXPECT_NEAR(point.x, 1 - even, 0.2) << point.sample;
    }
  }
  EXPECT_EQ(feature_map(two_groups(), 4).size(), 4u);
  EXPECT_TRUE(feature_map(torch::zeros({5, 8}), 10).empty());
  EXPECT_TRUE(feature_map(two_groups().narrow(0, 0, 2), 10).empty());
}

TEST(FeatureMap, NeighboursAreTheNearestOthers) {
  const auto found = nearest_neighbours(two_groups(), 2, 3);
  ASSERT_EQ(found.size(), 2u);
  EXPECT_EQ(found[0].sample, 0u);
  EXPECT_THAT(found[0].nearest, testing::ElementsAre(2, 4, 6));
  EXPECT_TRUE(nearest_neighbours(torch::zeros({5, 8}), 2, 3).empty());
}

}  // namespace
}  // namespace riffle

#include "riffle/report/curve.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace riffle {
namespace {

using testing::ElementsAre;

TEST(SpreadApart, LeavesPlacesThatDoNotTouch) {
  EXPECT_THAT(spread_apart({10, 30, 60}, 15, 100), ElementsAre(10, 30, 60));
  EXPECT_TRUE(spread_apart({}, 15, 100).empty());
}

TEST(SpreadApart, CentresABlockOnWhatItsMembersWanted) {
  EXPECT_THAT(spread_apart({50, 50, 50}, 10, 100), ElementsAre(40, 50, 60));
  EXPECT_THAT(spread_apart({10, 50, 52}, 10, 100), ElementsAre(10, 46, 56));
}

TEST(SpreadApart, StaysAboveTheLimit) {
  EXPECT_THAT(spread_apart({95, 96, 97}, 10, 100), ElementsAre(80, 90, 100));
}

TEST(Thin, KeepsTheExtremesOfEachColumnAndTheLastPlace) {
  std::vector<CurvePlace> points;
  for (int i = 0; i < 1000; ++i)
    points.push_back({double(i), i == 500 ? 9.0 : i == 501 ? -9.0 : 0.0});
  const auto kept = thin(points, 10);
  EXPECT_LE(kept.size(), 21u);
  const auto has = [&](double y) {
    return std::any_of(kept.begin(), kept.end(),
                       [&](const CurvePlace& place) { return place.y == y; });
  };
  EXPECT_TRUE(has(9));
  EXPECT_TRUE(has(-9));
  EXPECT_EQ(kept.back().x, 999);
  EXPECT_TRUE(std::is_sorted(kept.begin(), kept.end(), [](auto& a, auto& b) { return a.x < b.x; }));
}

}  // namespace
}  // namespace riffle

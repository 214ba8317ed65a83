#include "riffle/buffer/weighted_draw.h"

#include <cmath>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace riffle {
namespace {

using testing::ElementsAre;
using testing::UnorderedElementsAre;

TEST(WeightedDraw, DrawsInProportionToTheWeights) {
  const std::vector<double> weights = {1, 0, 3, 6, 0};
  WeightedDraw drawing(weights);
  std::vector<int> drawn(weights.size(), 0);
  constexpr int kDraws = 20000;
  for (int i = 0; i < kDraws; ++i) {
    Random random(7, Purpose("weighted draw"), static_cast<std::uint64_t>(i));
    ++drawn[static_cast<std::size_t>(drawing.draw(1, random).front())];
  }
  for (std::size_t slot = 0; slot < weights.size(); ++slot) {
    const double share = weights[slot] / 10;
    const double spread = std::sqrt(share * (1 - share) * kDraws);
    EXPECT_NEAR(drawn[slot], share * kDraws, 4 * spread) << slot;
  }
}

TEST(WeightedDraw, SlotsAreDistinctAndComeBackForTheNextDraw) {
  WeightedDraw drawing(std::vector<double>{1e-9, 0, 1e9, 1, 2, 0});
  for (std::uint64_t i = 0; i < 100; ++i) {
    Random random(1, Purpose("weighted draw"), i);
    EXPECT_THAT(drawing.draw(4, random), UnorderedElementsAre(0, 2, 3, 4));
  }
}

TEST(WeightedDraw, TheSecondIsDrawnInProportionToWhoIsLeft) {
  const std::vector<double> weights = {6, 3, 1};
  WeightedDraw drawing(weights);
  constexpr int kDraws = 20000;
  double last_second = 0;
  for (int i = 0; i < kDraws; ++i) {
    Random random(3, Purpose("weighted draw"), static_cast<std::uint64_t>(i));
    last_second += drawing.draw(2, random)[1] == 2;
  }
  const double expected = 0.6 * (1.0 / 4) + 0.3 * (1.0 / 7);
  EXPECT_NEAR(last_second / kDraws, expected, 4 * std::sqrt(expected * (1 - expected) / kDraws));
}

TEST(WeightedDraw, TheSameWeightsGiveTheSameDraws) {
  const std::vector<double> weights = {0.1, 0.7, 0.3, 5, 2.5, 1e-3, 8};
  WeightedDraw used(weights);
  for (std::uint64_t i = 0; i < 50; ++i) {
    Random random(5, Purpose("weighted draw"), i);
    used.draw(4, random);
  }
  WeightedDraw fresh(weights);
  Random a(9, Purpose("weighted draw"), 0);
  Random b(9, Purpose("weighted draw"), 0);
  EXPECT_EQ(used.draw(7, a), fresh.draw(7, b));
}

TEST(WeightedDraw, ASingleSlotIsDrawn) {
  WeightedDraw drawing(std::vector<double>{2.0});
  Random random(1, Purpose("weighted draw"), 0);
  EXPECT_THAT(drawing.draw(1, random), ElementsAre(0));
}

}  // namespace
}  // namespace riffle

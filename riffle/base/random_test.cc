#include "riffle/base/random.h"

#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace riffle {
namespace {

using testing::ElementsAre;

// Known-answer vectors published with the Random123 library (kat_vectors, philox4x32 10).
TEST(Philox, MatchesPublishedVectors) {
  EXPECT_THAT(philox({0, 0, 0, 0}, {0, 0}),
              ElementsAre(0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8));
  EXPECT_THAT(philox({0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff}, {0xffffffff, 0xffffffff}),
              ElementsAre(0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd));
  EXPECT_THAT(philox({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}),
              ElementsAre(0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1));
}

TEST(Random, IsAFunctionOfSeedPurposeAndPosition) {
  const auto draws = [](std::uint64_t seed, const char* purpose, std::uint64_t position) {
    Random random(seed, Purpose(purpose), position);
    std::vector<std::uint32_t> values;
    for (int i = 0; i < 9; ++i) values.push_back(random.bits());
    return values;
  };
  const auto reference = draws(7, "augment", 3);
  EXPECT_EQ(reference, draws(7, "augment", 3));
  EXPECT_NE(reference, draws(8, "augment", 3));
  EXPECT_NE(reference, draws(7, "sample", 3));
  EXPECT_NE(reference, draws(7, "augment", 4));
  EXPECT_NE(reference, draws(7, "augment", 3 + (std::uint64_t{1} << 32)));
  EXPECT_NE(reference, draws(7 + (std::uint64_t{1} << 32), "augment", 3));
}

// Returns the means of many draws and of their squares.
template <typename Draw>
std::pair<double, double> moments(const Draw& draw) {
  constexpr int kDraws = 200000;
  double sum = 0, squares = 0;
  for (int i = 0; i < kDraws; ++i) {
    const double value = draw();
    sum += value;
    squares += value * value;
  }
  return {sum / kDraws, squares / kDraws};
}

TEST(Random, UniformStaysInRangeWithTheRightMoments) {
  Random random(1, Purpose("test"), 0);
  const auto [mean, square] = moments([&] {
    const float u = random.uniform();
    EXPECT_GE(u, 0.0f);
    EXPECT_LT(u, 1.0f);
    return u;
  });
  EXPECT_NEAR(mean, 0.5, 0.003);
  EXPECT_NEAR(square, 1.0 / 3, 0.003);
}

TEST(Random, BelowCoversTheRangeEvenly) {
  Random random(2, Purpose("test"), 0);
  std::vector<int> counts(7);
  for (int i = 0; i < 70000; ++i) ++counts.at(random.below(7));
  for (const int count : counts) EXPECT_NEAR(count, 10000, 400);
}

TEST(Random, NormalHasZeroMeanAndUnitVariance) {
  Random random(3, Purpose("test"), 0);
  const auto [mean, square] = moments([&] { return random.normal(); });
  EXPECT_NEAR(mean, 0, 0.01);
  EXPECT_NEAR(square, 1, 0.02);
}

}  // namespace
}  // namespace riffle

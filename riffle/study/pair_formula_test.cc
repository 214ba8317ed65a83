#include "riffle/study/pair_formula.h"

#include <cmath>

#include <gtest/gtest.h>

#include "riffle/stream/pairs.h"

namespace riffle {
namespace {

MetricsHistory history(std::vector<double> sizes, std::vector<double> clips) {
  MetricsHistory metrics;
  std::vector<double> updates;
  for (std::size_t i = 0; i < sizes.size(); ++i) updates.push_back(10.0 * static_cast<double>(i));
  metrics.curves["buffer_size"] = {updates, std::move(sizes)};
  metrics.curves["buffer_clips"] = {updates, std::move(clips)};
  return metrics;
}

TEST(PairFormula, TakesTheShareOfNeighboursFromWhatTheBufferHeld) {
  const auto curve = expected_same_clip_pairs(history({256, 4096, 4096}, {4, 64, 1500}));
  ASSERT_EQ(curve.values.size(), 3u);
  EXPECT_EQ(curve.updates[2], 20);
  EXPECT_DOUBLE_EQ(curve.values[0], pair_correlation(256, 252.0 / 255));
  EXPECT_DOUBLE_EQ(curve.values[1], pair_correlation(4096, 4032.0 / 4095));
  // Clips of 64 each have 63 of the 4,095 other samples for a pair; the formula's clips are of
  // random length, which makes it about twice as much.
  EXPECT_NEAR(curve.values[1] / (63.0 / 4095), 2, 0.1);
  EXPECT_LT(curve.values[2], curve.values[1] / 10);
}

TEST(PairFormula, KnowsTheExtremes) {
  const auto curve = expected_same_clip_pairs(history({64, 64, 64, 1}, {1, 64, 0, 1}));
  EXPECT_DOUBLE_EQ(curve.values[0], 1) << "one clip";
  EXPECT_DOUBLE_EQ(curve.values[1], 0) << "a clip each";
  EXPECT_DOUBLE_EQ(curve.values[2], 0) << "a source without clips";
  EXPECT_DOUBLE_EQ(curve.values[3], 0) << "no pair";
  EXPECT_TRUE(expected_same_clip_pairs({}).values.empty());
}

}  // namespace
}  // namespace riffle

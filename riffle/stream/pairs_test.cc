#include "riffle/stream/pairs.h"

#include <cmath>
#include <stdexcept>
#include <vector>

#include <gtest/gtest.h>

#include "riffle/base/random.h"
#include "riffle/stream/stream.h"

namespace riffle {
namespace {

double summed_pair_by_pair(std::int64_t n, double p) {
  std::vector<long double> powers = {1};
  for (std::int64_t k = 1; k < n; ++k) powers.push_back(powers.back() * p);
  long double sum = 0;
  for (std::int64_t i = 0; i < n; ++i) {
    for (std::int64_t j = i + 1; j < n; ++j) sum += powers[static_cast<std::size_t>(j - i)];
  }
  return static_cast<double>(sum / (static_cast<long double>(n) * (n - 1) / 2));
}

TEST(Pairs, ShareCountsEqualPairsOnly) {
  EXPECT_EQ(same_clip_share(std::vector<std::int64_t>{}), 0);
  EXPECT_EQ(same_clip_share(std::vector<std::int64_t>{4}), 0);
  EXPECT_EQ(same_clip_share(std::vector<std::int64_t>{4, 4}), 1);
  EXPECT_EQ(same_clip_share(std::vector<std::int64_t>{4, 5}), 0);
  EXPECT_DOUBLE_EQ(same_clip_share(std::vector<std::int64_t>{1, 2, 1, 2, 1}), 4.0 / 10);
}

TEST(Pairs, SamplesWithoutAClipShareOneWithNobody) {
  EXPECT_EQ(same_clip_share(std::vector<std::int64_t>(10, kNoClip)), 0);
  EXPECT_DOUBLE_EQ(same_clip_share(std::vector<std::int64_t>{kNoClip, 3, kNoClip, 3}), 1.0 / 6);
}

TEST(Pairs, ShareAgreesWithCountingEveryPair) {
  Random random(1, Purpose("clips"), 0);
  std::vector<std::int64_t> clips;
  for (int i = 0; i < 300; ++i) clips.push_back(static_cast<std::int64_t>(random.below(20)) - 1);
  int equal = 0;
  for (std::size_t i = 0; i < clips.size(); ++i) {
    for (std::size_t j = i + 1; j < clips.size(); ++j) {
      equal += clips[i] == clips[j] && clips[i] != kNoClip ? 1 : 0;
    }
  }
  EXPECT_DOUBLE_EQ(same_clip_share(clips), equal / (300.0 * 299 / 2));
}

TEST(Pairs, FormulaAgreesWithTheSumOverAllPairs) {
  for (const std::int64_t n : {2, 3, 4, 7, 64, 256, 1000}) {
    for (const double p : {0.0, 1e-9, 0.1, 0.5, 0.9, 0.98, 0.99, 0.995, 0.9961, 0.999, 0.9999,
                           1 - 1e-6, 1 - 1e-9, 1 - 1e-12, 1 - 1e-15, 1.0}) {
      const double expected = summed_pair_by_pair(n, p);
      EXPECT_NEAR(pair_correlation(n, p), expected, 1e-12 * expected) << "n " << n << ", p " << p;
    }
  }
}

TEST(Pairs, FormulaIsOneWhenNeighboursAlwaysAre) {
  for (const std::int64_t n : {2LL, 256LL, 65536LL, 1'000'000'000LL}) {
    EXPECT_EQ(pair_correlation(n, 1), 1);
  }
  EXPECT_EQ(pair_correlation(1, 1), 0);
  EXPECT_EQ(pair_correlation(256, 0), 0);
}

TEST(Pairs, AFifoBufferDilutesCorrelationByItsSize) {
  const double batch = pair_correlation(4096, 0.9), buffer = pair_correlation(65536, 0.9);
  EXPECT_NEAR(buffer, batch * 4096 / 65536, 0.01 * buffer);
}

TEST(Pairs, WhatIsNotAProbabilityIsAProgrammingError) {
  EXPECT_THROW(pair_correlation(4, -0.1), std::logic_error);
  EXPECT_THROW(pair_correlation(4, 1.1), std::logic_error);
  EXPECT_THROW(pair_correlation(4, std::nan("")), std::logic_error);
}

}  // namespace
}  // namespace riffle

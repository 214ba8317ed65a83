#include "riffle/stream/shapes/zipf.h"

#include <cmath>
#include <map>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "riffle/stream/testing/generated_stream.h"

namespace riffle {
namespace {

using testing::HasSubstr;
using testing::ThrowsMessage;

constexpr const char* kZipf = "zipf:classes=20,seed=3";

std::map<std::string, double> label_counts(const std::vector<Sample>& samples) {
  std::map<std::string, double> counts;
  for (const auto& sample : samples) ++counts[sample.label];
  return counts;
}

TEST(Zipf, AClassIsAsFrequentAsItsRankSays) {
  const auto source = generated({.samples = 40000, .labels = 20, .width = 1, .height = 1});
  const auto all = label_counts(take(*source()));
  for (const double exponent : {0.0, 1.0, 2.0}) {
    const auto samples = take(*open_shapes(source, cat(kZipf, ",exponent=", exponent)));
    expect_numbered(samples);
    auto kept = label_counts(samples);
    for (const auto& [label, count] : all) {
      const double chance = std::pow(static_cast<double>(zipf_rank(label, 20, 3)), -exponent);
      EXPECT_NEAR(kept[label], count * chance, 1 + 5 * std::sqrt(count * chance)) << label;
    }
  }
}

TEST(Zipf, RanksSpreadOverAllClassesAndDependOnTheSeed) {
  std::map<std::int64_t, int> of_rank;
  int same = 0;
  for (int i = 0; i < 2000; ++i) {
    const auto label = cat("class ", i);
    const auto rank = zipf_rank(label, 20, 3);
    ++of_rank[rank];
    same += rank == zipf_rank(label, 20, 4);
  }
  EXPECT_EQ(of_rank.size(), 20u);
  EXPECT_EQ(of_rank.begin()->first, 1);
  for (const auto& [rank, count] : of_rank) EXPECT_NEAR(count, 100, 45) << rank;
  EXPECT_NEAR(same, 100, 45);
}

TEST(Zipf, NeedsLabelsAndTheirNumber) {
  EXPECT_THAT([] { take(*open_shapes(generated({}), kZipf)); },
              ThrowsMessage<Error>(HasSubstr("'item 0' has none")));
  EXPECT_THAT([] { open_shapes(generated({}), "zipf"); },
              ThrowsMessage<Error>(HasSubstr("zipf:classes=200")));
}

}  // namespace
}  // namespace riffle

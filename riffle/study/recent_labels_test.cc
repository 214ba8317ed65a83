#include "riffle/study/recent_labels.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace riffle {
namespace {

using testing::ElementsAreArray;

Config of_capacity(const std::string& capacity) {
  Config config;
  config.stream = "synthetic:?frames=1&size=16&classes=4&samples=40&seed=3";
  config.learner.augment.size = 16;
  config.learner.buffer.capacity = capacity;
  return config;
}

TEST(RecentLabels, AreThoseThatABufferOfTheNewestWouldHold) {
  const Config config = of_capacity("8");
  std::vector<std::string> all;
  const auto stream = open_stream(config.stream);
  while (const auto sample = stream->next()) all.push_back(sample->label);
  ASSERT_EQ(all.size(), 40u);

  RecentLabels recent(config);
  EXPECT_THAT(recent.at(5), ElementsAreArray(all.begin(), all.begin() + 5));
  EXPECT_THAT(recent.at(20), ElementsAreArray(all.begin() + 12, all.begin() + 20));
  EXPECT_THAT(recent.at(20), ElementsAreArray(all.begin() + 12, all.begin() + 20));
  EXPECT_THAT(recent.at(100), ElementsAreArray(all.begin() + 32, all.end()))
      << "the stream ends at 40";
}

TEST(RecentLabels, CountPicturesWhereTheCapacityIsInBytes) {
  RecentLabels recent(of_capacity("4KiB"));
  EXPECT_EQ(recent.at(40).size(), 4096u / (16 * 16 * 3));
}

}  // namespace
}  // namespace riffle

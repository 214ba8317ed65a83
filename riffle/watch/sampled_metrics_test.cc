#include "riffle/watch/sampled_metrics.h"

#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "riffle/base/clock.h"
#include "riffle/base/testing/temp_folder.h"
#include "riffle/base/text.h"

namespace riffle {
namespace {

class SampledMetricsTest : public TempFolder {
 protected:
  std::filesystem::path write(std::int64_t lines, const std::string& end = "") const {
    const auto path = folder_ / "metrics.jsonl";
    std::ofstream out(path);
    for (std::int64_t i = 1; i <= lines; ++i) {
      out << "{\"update\":" << i << ",\"loss\":" << -1.0 * static_cast<double>(i) / 1e6
          << ",\"std\":0.5" << (i % 100 == 0 ? ",\"rare\":7" : "")
          << ",\"buffer_mean_age\":123456.5,\"buffer_clips\":12345,\"updates_per_s\":12.25}\n";
    }
    out << end;
    return path;
  }
};

TEST_F(SampledMetricsTest, AShortFileIsReadWhole) {
  const auto sampled = sample_metrics(write(5, "{\"update\":6,\"loss\":"), 400);
  EXPECT_THAT(sampled.updates, testing::ElementsAre(1, 2, 3, 4, 5));
  EXPECT_THAT(sampled.curves.at("std"), testing::Each(0.5));
  EXPECT_EQ(newest_metrics(folder_ / "metrics.jsonl").at("update"), 5);
}

TEST_F(SampledMetricsTest, PointsOfALongerFileAreMeans) {
  const auto sampled = sample_metrics(write(1000), 100);
  ASSERT_EQ(sampled.updates.size(), 100u);
  EXPECT_EQ(sampled.updates[0], 10);
  EXPECT_NEAR(sampled.curves.at("loss")[0], -5.5e-6, 1e-12);
  EXPECT_EQ(sampled.updates.back(), 1000);
}

TEST_F(SampledMetricsTest, AMillionLinesTakeNoLongerThanAFewHundredPlaces) {
  const auto path = write(1'000'000, "{\"update\":2000000,\"lo");
  ASSERT_GT(std::filesystem::file_size(path), 100'000'000u);
  const auto start = Clock::now();
  const auto sampled = sample_metrics(path, 400);
  EXPECT_LT(seconds_since(start), 1);
  EXPECT_GT(sampled.updates.size(), 390u);
  EXPECT_LT(sampled.updates.front(), 100);
  EXPECT_EQ(sampled.updates.back(), 1'000'000);
  for (std::size_t i = 0; i < sampled.updates.size(); ++i) {
    EXPECT_NEAR(sampled.curves.at("loss")[i], -sampled.updates[i] / 1e6, 1e-5);
  }
  EXPECT_EQ(newest_metrics(path).at("update"), 1'000'000);
}

// Of a live stream most lines see no batch, and a line that waits takes longer than others.
TEST_F(SampledMetricsTest, RatesAreWhatChangedOverTheTimeThatItTook) {
  const auto path = folder_ / "metrics.jsonl";
  std::ofstream(path)
      << R"({"update":10,"seconds":1,"samples_seen":64,"updates_per_s":10,"samples_per_s":64,)"
      << R"("stream_held_share":0.9})"
      << "\n"
      << R"({"update":20,"seconds":2,"samples_seen":64,"updates_per_s":10,"samples_per_s":0,)"
      << R"("stream_held_share":0})"
      << "\n"
      << R"({"update":30,"seconds":5,"samples_seen":128,"updates_per_s":3.3,"samples_per_s":21,)"
      << R"("stream_held_share":0.8})"
      << "\n";
  const auto newest = newest_metrics(path);
  EXPECT_DOUBLE_EQ(newest.at("updates_per_s"), 20.0 / 4);
  EXPECT_DOUBLE_EQ(newest.at("samples_per_s"), 64.0 / 4);
  EXPECT_DOUBLE_EQ(newest.at("stream_held_share"), 0.8 * 3 / 4);
  const auto point = sample_metrics(path, 1);
  EXPECT_THAT(point.curves.at("updates_per_s"), testing::ElementsAre(20.0 / 4));
  EXPECT_THAT(sample_metrics(path, 3).curves.at("samples_per_s"),
              testing::ElementsAre(64, 0, 64.0 / 3));
}

TEST_F(SampledMetricsTest, AllTimeIsInTheRateOfSomePoint) {
  const auto path = folder_ / "metrics.jsonl";
  const auto write_lines = [&](int lines, const std::string& end) {
    std::ofstream out(path);
    double seconds = 0;
    for (int i = 1; i <= lines; ++i) {
      const bool slow = i % 2 == 1;
      seconds += slow ? 9 : 1;
      out << "{\"update\":" << 10 * i << ",\"seconds\":" << seconds
          << ",\"samples_seen\":" << 64 * i << ",\"stream_held_share\":" << (slow ? 0.8 : 0.3)
          << end << "}\n";
    }
  };
  write_lines(6, "");
  const auto sampled = sample_metrics(path, 3);
  // The first line has none before it.
  EXPECT_THAT(sampled.curves.at("updates_per_s"), testing::ElementsAre(10, 2, 2));
  EXPECT_THAT(sampled.curves.at("samples_per_s"), testing::ElementsAre(64, 12.8, 12.8));
  EXPECT_THAT(sampled.curves.at("stream_held_share"),
              testing::ElementsAre(testing::DoubleEq(0.3), testing::DoubleEq(0.75),
                                   testing::DoubleEq(0.75)));

  write_lines(20'000, ",\"text\":\"" + std::string(200, 'x') + "\"");
  const auto places = sample_metrics(path, 100);
  EXPECT_THAT(places.updates.back(), 200'000);
  // Four lines each, as slow as they are quick.
  const auto& rates = places.curves.at("updates_per_s");
  EXPECT_THAT(std::vector(rates.begin() + 1, rates.end()), testing::Each(testing::DoubleEq(2)));
}

TEST_F(SampledMetricsTest, WhatIsNotMetricsIsPassedOver) {
  const auto path = folder_ / "metrics.jsonl";
  EXPECT_TRUE(sample_metrics(path, 10).updates.empty());
  EXPECT_TRUE(newest_metrics(path).empty());
  std::ofstream(path)
      << "\n{\n[1,2]\n{\"update\":\"x\"}\n{\"update\":3,\"loss\":null,\"label\":\"x\"}\n"
      << std::string(100'000, 'x') << "\n";
  const auto sampled = sample_metrics(path, 10);
  EXPECT_THAT(sampled.updates, testing::ElementsAre(3));
  EXPECT_TRUE(sampled.curves.empty());
}

}  // namespace
}  // namespace riffle

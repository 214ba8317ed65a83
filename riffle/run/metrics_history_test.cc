#include "riffle/run/metrics_history.h"

#include <cmath>
#include <tuple>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "riffle/base/file.h"
#include "riffle/base/testing/temp_folder.h"
#include "riffle/run/metrics.h"

namespace riffle {
namespace {

class MetricsHistoryTest : public TempFolder {};

TEST_F(MetricsHistoryTest, GivesBackWhatMetricsFileWroteKeyByKey) {
  const auto path = folder_ / "metrics.jsonl";
  EXPECT_TRUE(read_metrics(path).curves.empty()) << "there is no file yet";
  EXPECT_EQ(newest_update(path), 0);
  {
    MetricsFile file(path, {});
    for (int i = 1; i <= 20; ++i) file.write(i, {{"loss", -0.5 * i}, {"std", std::nan("")}});
    file.write(21, {{"loss", 1.0}, {"nearest_0%", 0.25}});
  }
  write_atomically(path, read_text(path) + "{\"update\":22,\"lo");
  EXPECT_EQ(newest_update(path), 21) << "the last whole line";
  const MetricsHistory history = read_metrics(path);
  ASSERT_NE(history.find("loss"), nullptr);
  EXPECT_EQ(history.find("loss")->values.size(), 21u);
  EXPECT_EQ(history.find("loss")->updates[3], 4);
  EXPECT_EQ(history.last("loss"), 1.0);
  EXPECT_DOUBLE_EQ(history.late_mean("loss"), (1.0 - 10.0 - 9.5) / 3);
  EXPECT_TRUE(std::isnan(history.late_mean("std")));
  EXPECT_THAT(history.find("nearest_0%")->updates, testing::ElementsAre(21));
  EXPECT_EQ(history.find("absent"), nullptr);
  EXPECT_TRUE(std::isnan(history.last("absent")));
}

// Lines of long ago are fewer, and some took longer than others.
TEST_F(MetricsHistoryTest, MeansAreOverTheLastTenthOfTheUpdatesHoweverManyLinesItHas) {
  const auto path = folder_ / "metrics.jsonl";
  EXPECT_TRUE(std::isnan(read_metrics(path).late_updates_per_s()));
  {
    MetricsFile file(path, {});
    file.write(10, {{"loss", 9.0}, {"seconds", 1.0}, {"updates_per_s", 10.0}});
  }
  EXPECT_EQ(read_metrics(path).late_mean("loss"), 9);
  EXPECT_EQ(read_metrics(path).late_updates_per_s(), 10);
  {
    MetricsFile file(path, {});
    for (const auto& [update, loss, seconds] :
         {std::tuple(500, 9.0, 50.0), {900, 8.0, 90.0}, {940, 4.0, 94.0}, {1000, 2.0, 114.0}}) {
      file.write(update, {{"loss", loss}, {"seconds", seconds}, {"updates_per_s", 10.0}});
    }
  }
  const MetricsHistory history = read_metrics(path);
  EXPECT_DOUBLE_EQ(history.late_mean("loss"), 0.4 * 4 + 0.6 * 2);
  EXPECT_DOUBLE_EQ(history.late_updates_per_s(), 100 / 24.0);
}

TEST_F(MetricsHistoryTest, TimeThatStoodStillGivesNoEndlessRate) {
  const auto path = folder_ / "metrics.jsonl";
  {
    MetricsFile file(path, {});
    for (const int update : {10, 20}) {
      file.write(update, {{"seconds", 1.0}, {"updates_per_s", 12.0}});
    }
  }
  EXPECT_EQ(read_metrics(path).late_updates_per_s(), 12);
}

TEST_F(MetricsHistoryTest, AnUpdateThatIsNotAWholeNumberIsPassedOver) {
  const auto path = folder_ / "metrics.jsonl";
  write_atomically(path,
                   "{\"update\":7}\n{\"update\":\"8\"}\n{\"update\":1e300}\n{\"update\":[9]}\n"
                   "{\"update\":18446744073709551615}\n");
  EXPECT_EQ(newest_update(path), 7);
  EXPECT_TRUE(read_metrics(path).curves.empty());
}

}  // namespace
}  // namespace riffle

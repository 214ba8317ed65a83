#include "riffle/stream/retry_log.h"

#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace riffle {
namespace {

TEST(RetryLog, SaysAtOnceThenAfterTenSecondsThenOnceAMinute) {
  std::vector<std::string> lines;
  RetryLog log("video:rtsp://camera", [&](const std::string& line) { lines.push_back(line); });
  const auto start = Clock::now();
  for (int second = 0; second < 200; ++second) {
    log.failed("refused", start + std::chrono::seconds(second));
  }
  EXPECT_EQ(log.lasted(start + std::chrono::seconds(200)), 200);
  log.worked(start + std::chrono::seconds(201));
  EXPECT_EQ(log.lasted(start + std::chrono::seconds(202)), 0);
  log.worked(start + std::chrono::seconds(202));
  log.failed("silent", start + std::chrono::seconds(300));
  EXPECT_THAT(lines,
              testing::ElementsAre(
                  "video:rtsp://camera cannot be reached (refused); retrying",
                  "video:rtsp://camera cannot be reached (refused); retrying, for 10.0 s so far",
                  "video:rtsp://camera cannot be reached (refused); retrying, for 1 min 10 s "
                  "so far",
                  "video:rtsp://camera cannot be reached (refused); retrying, for 2 min 10 s "
                  "so far",
                  "video:rtsp://camera cannot be reached (refused); retrying, for 3 min 10 s "
                  "so far",
                  "video:rtsp://camera is reached again, after 3 min 21 s",
                  "video:rtsp://camera cannot be reached (silent); retrying"));
}

}  // namespace
}  // namespace riffle

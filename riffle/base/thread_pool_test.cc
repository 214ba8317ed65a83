#include "riffle/base/thread_pool.h"

#include <atomic>
#include <stdexcept>
#include <vector>

#include <gtest/gtest.h>

namespace riffle {
namespace {

class ThreadPoolTest : public testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Threads, ThreadPoolTest, testing::Values(1, 2, 5));

TEST_P(ThreadPoolTest, EveryIterationRunsOnce) {
  ThreadPool pool(GetParam());
  EXPECT_EQ(pool.threads(), GetParam());
  for (const std::int64_t count : {0, 1, 3, 1000}) {
    std::vector<std::atomic<int>> turns(static_cast<std::size_t>(count));
    pool.for_each(count, [&](std::int64_t i) { ++turns[static_cast<std::size_t>(i)]; });
    for (const auto& turn : turns) EXPECT_EQ(turn, 1);
  }
}

TEST_P(ThreadPoolTest, AnExceptionReachesTheCallerAndThePoolContinues) {
  ThreadPool pool(GetParam());
  EXPECT_THROW(pool.for_each(100,
                             [](std::int64_t i) {
                               if (i == 50) throw std::runtime_error("turn 50");
                             }),
               std::runtime_error);
  std::atomic<int> turns = 0;
  pool.for_each(10, [&](std::int64_t) { ++turns; });
  EXPECT_EQ(turns, 10);
}

}  // namespace
}  // namespace riffle

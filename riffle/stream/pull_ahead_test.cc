#include "riffle/stream/pull_ahead.h"

#include <atomic>
#include <stdexcept>
#include <string>

#include <gtest/gtest.h>

namespace riffle {
namespace {

std::uint64_t weightless(const std::string&) { return 0; }

std::string text(int&& item) { return std::to_string(item); }

TEST(PullAhead, HandsOutInTheOrderOfThePullsWithAnyNumberOfThreads) {
  for (const int threads : {0, 1, 2, 7}) {
    int pulled = 0;
    std::atomic<int> at_once = 0;
    PullAhead<int, std::string> ahead(
        threads, 1000,
        [&]() -> std::optional<int> {
          EXPECT_EQ(++at_once, 1);
          const int item = pulled < 300 ? pulled++ : -1;
          --at_once;
          return item < 0 ? std::nullopt : std::optional(item);
        },
        text, weightless);
    for (int i = 0; i < 300; ++i) ASSERT_EQ(ahead.take(), std::to_string(i));
    EXPECT_FALSE(ahead.take());
    EXPECT_FALSE(ahead.take());
  }
}

TEST(PullAhead, HoldsNoMoreThanItsBytesAndOneItemPerThreadOfAnEndlessSource) {
  constexpr int kThreads = 3;
  std::atomic<int> pulled = 0;
  PullAhead<int, std::string> ahead(
      kThreads, 1000, [&] { return std::optional<int>(pulled++); }, text,
      [](const std::string&) { return std::uint64_t{100}; });
  for (int taken = 1; taken <= 300; ++taken) {
    ASSERT_EQ(ahead.take(), std::to_string(taken - 1));
    ASSERT_LE(pulled, taken + 10 + kThreads);
  }
}

TEST(PullAhead, AnExceptionComesOutWhereItsItemWouldAndTheOthersFollow) {
  for (const int threads : {0, 3}) {
    int pulled = 0;
    PullAhead<int, std::string> ahead(
        threads, 1000,
        [&]() -> std::optional<int> {
          if (++pulled == 3) throw std::runtime_error("pull");
          return pulled;
        },
        [](int&& item) {
          if (item == 5) throw std::logic_error("work");
          return std::to_string(item);
        },
        weightless);
    EXPECT_EQ(ahead.take(), "1");
    EXPECT_EQ(ahead.take(), "2");
    EXPECT_THROW(ahead.take(), std::runtime_error);
    EXPECT_EQ(ahead.take(), "4");
    EXPECT_THROW(ahead.take(), std::logic_error);
    EXPECT_EQ(ahead.take(), "6");
  }
}

}  // namespace
}  // namespace riffle

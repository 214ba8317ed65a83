#include "riffle/stream/read_ahead.h"

#include <atomic>
#include <stdexcept>

#include <gtest/gtest.h>

namespace riffle {
namespace {

std::uint64_t weigh_nothing(const std::int64_t&) { return 0; }

TEST(ReadAhead, HandsOutResultsInOrderWithAnyNumberOfThreads) {
  for (const int threads : {0, 1, 2, 7}) {
    ReadAhead<std::int64_t> ahead(
        threads, 1000, [](std::int64_t i) { return i * i; }, weigh_nothing);
    ahead.start(5, 300);
    for (std::int64_t i = 5; i < 300; ++i) ASSERT_EQ(ahead.take(), i * i);
  }
}

TEST(ReadAhead, StartsAgainAnywhereAtAnyTime) {
  for (const int threads : {0, 3}) {
    ReadAhead<std::int64_t> ahead(
        threads, 1000, [](std::int64_t i) { return i; }, weigh_nothing);
    for (std::int64_t round = 0; round < 200; ++round) {
      const std::int64_t first = round * 37 % 101;
      ahead.start(first, first + 50);
      for (std::int64_t i = 0; i < round % 7; ++i) ASSERT_EQ(ahead.take(), first + i);
    }
  }
}

TEST(ReadAhead, HoldsNoMoreThanItsBytesAndOneItemPerThread) {
  constexpr int kThreads = 3;
  std::atomic<std::int64_t> begun = 0;
  ReadAhead<std::int64_t> ahead(
      kThreads, 1000, [&](std::int64_t i) { return ++begun, i; },
      [](const std::int64_t&) { return std::uint64_t{100}; });
  ahead.start(0, 500);
  for (std::int64_t taken = 1; taken <= 500; ++taken) {
    ASSERT_EQ(ahead.take(), taken - 1);
    ASSERT_LE(begun, taken + 10 + kThreads);
  }
}

TEST(ReadAhead, AnItemHeavierThanTheBoundStillComes) {
  ReadAhead<std::int64_t> ahead(
      2, 10, [](std::int64_t i) { return i; },
      [](const std::int64_t&) { return std::uint64_t{1000}; });
  ahead.start(0, 20);
  for (std::int64_t i = 0; i < 20; ++i) ASSERT_EQ(ahead.take(), i);
}

TEST(ReadAhead, AnExceptionComesOutWhereItsItemWould) {
  ReadAhead<std::int64_t> ahead(
      2, 1000,
      [](std::int64_t i) {
        if (i == 3) throw std::runtime_error("three");
        return i;
      },
      weigh_nothing);
  ahead.start(0, 6);
  for (const std::int64_t i : {0, 1, 2}) EXPECT_EQ(ahead.take(), i);
  EXPECT_THROW(ahead.take(), std::runtime_error);
  for (const std::int64_t i : {4, 5}) EXPECT_EQ(ahead.take(), i);
}

TEST(ReadAhead, DoesNotPileUpExceptions) {
  constexpr int kThreads = 3;
  std::atomic<int> begun = 0;
  ReadAhead<std::int64_t> ahead(
      kThreads, 1000,
      [&](std::int64_t) -> std::int64_t {
        ++begun;
        throw std::runtime_error("gone");
      },
      weigh_nothing);
  ahead.start(0, 1'000'000);
  for (int taken = 1; taken <= 300; ++taken) {
    ASSERT_THROW(ahead.take(), std::runtime_error);
    ASSERT_LE(begun, taken + 1 + kThreads);
  }
}

TEST(ReadAhead, MayBeLeftWhileItemsAreInHand) {
  ReadAhead<std::int64_t> ahead(
      4, 1000, [](std::int64_t i) { return i; }, weigh_nothing);
  ahead.start(0, 1'000'000);
  EXPECT_EQ(ahead.take(), 0);
}

}  // namespace
}  // namespace riffle

#include "riffle/run/stop_signals.h"

#include <atomic>
#include <csignal>
#include <cstdio>
#include <thread>

#include <gtest/gtest.h>

#include "riffle/base/clock.h"

namespace riffle {
namespace {

TEST(StopSignals, RepeatsWithinASecondAreOneRequest) {
  std::atomic<int> calls = 0;
  {
    const StopSignals signals([&](const char*) { ++calls; }, 0);
    for (const int number : {SIGINT, SIGINT, SIGTERM, SIGHUP}) std::raise(number);
    while (calls == 0) std::this_thread::yield();
  }
  EXPECT_EQ(calls, 1);
}

TEST(StopSignals, AnObjectAfterAnotherHeedsItsOwnFirstSignal) {
  for (int i = 0; i < 2; ++i) {
    std::atomic<int> calls = 0;
    const StopSignals signals([&](const char*) { ++calls; }, 0);
    std::raise(SIGTERM);
    while (calls == 0) std::this_thread::yield();
  }
}

TEST(StopSignalsDeathTest, ASignalASecondLaterEndsTheProcessAtOnce) {
  testing::GTEST_FLAG(death_test_style) = "threadsafe";
  EXPECT_EXIT(
      {
        const StopSignals signals([](const char*) {}, 0);
        const auto start = Clock::now();
        while (seconds_since(start) < 0.9) std::raise(SIGINT);
        std::fputs("alive after repeats", stderr);
        while (seconds_since(start) < 60) std::raise(SIGINT);
      },
      testing::KilledBySignal(SIGINT), "alive after repeats");
}

}  // namespace
}  // namespace riffle

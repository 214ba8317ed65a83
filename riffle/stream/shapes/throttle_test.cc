#include "riffle/stream/shapes/throttle.h"

#include <chrono>
#include <future>

#include <gtest/gtest.h>

#include "riffle/stream/testing/generated_stream.h"

namespace riffle {
namespace {

using Clock = std::chrono::steady_clock;
using namespace std::chrono_literals;

TEST(Throttle, NeverGivesMoreThanTheRate) {
  const auto stream = open_shapes(generated({.samples = 50}), "throttle:rate=500");
  const auto start = Clock::now();
  EXPECT_EQ(take(*stream).size(), 50u);
  EXPECT_GE(Clock::now() - start, 49 * 2ms);
}

TEST(Throttle, LeavesSamplesAsTheyAre) {
  const auto whole = take(*generated({.samples = 20})());
  const auto samples = take(*open_shapes(generated({.samples = 20}), "throttle:rate=1e8"));
  ASSERT_EQ(samples.size(), whole.size());
  for (std::size_t i = 0; i < samples.size(); ++i) expect_same(samples[i], whole[i]);
}

TEST(Throttle, StopEndsTheWait) {
  const auto stream = open_shapes(generated({.samples = 5}), "throttle:rate=0.001");
  EXPECT_TRUE(stream->next());
  auto waiting = std::async(std::launch::async, [&] { return stream->next().has_value(); });
  stream->stop();
  ASSERT_EQ(waiting.wait_for(30s), std::future_status::ready);
  EXPECT_FALSE(waiting.get());
  EXPECT_FALSE(stream->next());
}

}  // namespace
}  // namespace riffle

#include "riffle/train/intake.h"

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <mutex>
#include <stdexcept>

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace riffle {
namespace {

std::uint8_t shade(std::uint64_t index) { return static_cast<std::uint8_t>(10 * index + 5); }

// Gives numbered samples, each of its own shade; waits, as a camera does, once `ready` of them were
// given.
class IntakeCamera : public Stream {
 public:
  explicit IntakeCamera(std::int64_t ready) : ready_(ready) {}

  std::optional<Sample> next() override {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return given_ < ready_ || stopped_ || failing_ || ended_; });
    if (failing_) throw std::length_error("the camera fell off\nand broke");
    if (stopped_ || (ended_ && given_ == ready_)) return std::nullopt;
    Sample sample;
    sample.picture = Picture(6, 4);
    sample.index = static_cast<std::uint64_t>(given_++);
    std::ranges::fill(sample.picture.rgb, shade(sample.index));
    changed_.notify_all();
    return sample;
  }
  std::string position() const override { return std::to_string(given_); }
  void seek(const std::string&) override {}
  void stop() override { set(stopped_); }
  double unreachable_s() const override { return 7; }
  std::map<std::string, std::int64_t> skipped() const override { return {{"dark", given_ / 2}}; }

  void fail() { set(failing_); }
  void end() { set(ended_); }
  void deliver(std::int64_t more) {
    const std::lock_guard lock(mutex_);
    ready_ += more;
    changed_.notify_all();
  }
  void wait_until_given(std::int64_t count) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return given_ >= count; });
  }
  std::int64_t given() {
    const std::lock_guard lock(mutex_);
    return given_;
  }

 private:
  void set(bool& flag) {
    const std::lock_guard lock(mutex_);
    flag = true;
    changed_.notify_all();
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::int64_t ready_;
  std::int64_t given_ = 0;
  bool stopped_ = false, failing_ = false, ended_ = false;
};

std::vector<StreamBatch> wait_for_arrivals(Intake& intake) {
  while (intake.ready() == 0) std::this_thread::yield();
  std::vector<StreamBatch> arrived;
  for (auto left = intake.ready(); left > 0; --left) arrived.push_back(*intake.take());
  return arrived;
}

TEST(Intake, HandsOverWholeBatchesOfStoredSizeWithThePositionAfterThem) {
  IntakeCamera camera(11);
  camera.end();
  Intake intake(camera, 4, 5, 2);
  for (const int batch : {0, 1}) {
    const auto taken = intake.take();
    ASSERT_TRUE(taken);
    ASSERT_EQ(taken->samples.size(), 4u);
    EXPECT_EQ(taken->samples[0].index, static_cast<std::uint64_t>(4 * batch));
    EXPECT_EQ(taken->pictures.sizes(), (at::IntArrayRef{4, 5, 5, 3}));
    EXPECT_EQ(taken->pictures[3][4][4][2].item<int>(), shade(taken->samples[3].index));
    EXPECT_EQ(taken->position, std::to_string(4 * batch + 4));
    EXPECT_EQ(taken->skipped.at("dark"), 2 * batch + 2);
  }
  EXPECT_FALSE(intake.take()) << "three samples are less than a batch";
  EXPECT_TRUE(intake.ended());
}

TEST(Intake, ReadersDivideAStreamByBatchesAndStayTogether) {
  for (const int reader : {0, 1, 2}) {
    IntakeCamera camera(2 * 3 * 4 + 11);
    camera.end();
    Intake intake(camera, 4, 5, 2, at::kCPU, {.reader = reader, .readers = 3});
    for (const int batch : {0, 1}) {
      const auto taken = intake.take();
      ASSERT_TRUE(taken);
      ASSERT_EQ(taken->samples.size(), 4u);
      const auto first = static_cast<std::uint64_t>(4 * (3 * batch + reader));
      EXPECT_EQ(taken->samples[0].index, first);
      EXPECT_EQ(taken->pictures[0][0][0][0].item<int>(), shade(first));
      EXPECT_EQ(taken->position, std::to_string(12 * batch + 12));
    }
    EXPECT_FALSE(intake.take()) << "eleven samples are less than a batch for each";
    EXPECT_EQ(intake.left_out(), 11);
  }
}

TEST(Intake, ReadsAgainWhatItHandedOverLast) {
  const auto stream = open_stream("synthetic:?frames=1&size=8&samples=22");
  Intake intake(*stream, 3, 8, 2, at::kCPU, {.reader = 1, .readers = 2});
  std::vector<StreamBatch> taken;
  while (auto batch = intake.take()) taken.push_back(std::move(*batch));
  ASSERT_EQ(taken.size(), 3u);
  EXPECT_FALSE(intake.in_doubt());
  intake.read_again(1);
  EXPECT_FALSE(intake.take()) << "the end was what it handed over";
  EXPECT_EQ(intake.left_out(), 4);
  EXPECT_EQ(intake.arrivals().samples, 22);

  const auto again = open_stream("synthetic:?frames=1&size=8&samples=22");
  Intake other(*again, 3, 8, 2, at::kCPU, {.reader = 1, .readers = 2});
  for (const auto& expected : taken) {
    ASSERT_TRUE(other.take());
    other.read_again(2);
    const auto batch = other.take();
    ASSERT_TRUE(batch);
    EXPECT_EQ(batch->position, expected.position);
    EXPECT_EQ(batch->samples[0].index, expected.samples[0].index);
    EXPECT_TRUE(batch->pictures.equal(expected.pictures));
  }
  EXPECT_FALSE(other.take());
  EXPECT_EQ(other.arrivals().samples, 22);
}

TEST(Intake, ReadsNoFurtherAheadThanItMay) {
  IntakeCamera camera(1000);
  Intake intake(camera, 4, 4, 2);
  ASSERT_TRUE(intake.take());
  // One taken, two wait, one is in the reader's hands.
  camera.wait_until_given(16);
  ASSERT_TRUE(intake.take());
  camera.wait_until_given(20);
  EXPECT_EQ(camera.given(), 20);
}

TEST(Intake, AStreamThatWaitsForRoomOrHasEndedIsNotSilent) {
  IntakeCamera camera(1000);
  Intake intake(camera, 4, 4, 2);
  ASSERT_TRUE(intake.take());
  camera.wait_until_given(16);
  while (intake.ready() < 2) std::this_thread::yield();
  const double held = intake.waits().reader_s;
  while (intake.waits().reader_s == held) std::this_thread::yield();
  EXPECT_EQ(intake.arrivals().samples, 16);
  EXPECT_EQ(intake.arrivals().unreachable_s, 7);
  EXPECT_EQ(intake.arrivals().seconds_since_last, 0);

  IntakeCamera silent(0);
  Intake waiting(silent, 4, 4, 2);
  EXPECT_EQ(waiting.ready(), 0u);
  EXPECT_GT(waiting.arrivals().seconds_since_last, 0);
  silent.end();
  EXPECT_FALSE(waiting.take());
  EXPECT_EQ(waiting.arrivals().seconds_since_last, 0);
}

TEST(Intake, TakesWhatArrivedWithoutWaiting) {
  IntakeCamera camera(0);
  Intake intake(camera, 2, 4, 3);
  EXPECT_EQ(intake.ready(), 0u);
  EXPECT_FALSE(intake.ended());
  camera.deliver(3);
  EXPECT_EQ(wait_for_arrivals(intake).size(), 1u);
  camera.deliver(1);
  EXPECT_EQ(wait_for_arrivals(intake)[0].samples[0].index, 2u);
  EXPECT_EQ(intake.waits().learner_s, 0);
}

TEST(Intake, WhatTheStreamThrowsComesAfterTheBatchesBeforeIt) {
  IntakeCamera camera(2);
  Intake intake(camera, 2, 4, 3);
  EXPECT_TRUE(intake.take());
  camera.fail();
  EXPECT_THAT([&] { intake.take(); },
              testing::ThrowsMessage<StreamError>("the stream failed: the camera fell off"));
  EXPECT_FALSE(intake.take());

  IntakeCamera other(0);
  other.fail();
  Intake live(other, 2, 4, 3);
  EXPECT_THROW(wait_for_arrivals(live), StreamError);
}

TEST(Intake, StopEndsTheWaitOfStreamAndLearner) {
  IntakeCamera camera(1);
  Intake intake(camera, 2, 4, 3);
  std::thread stopper([&] {
    camera.wait_until_given(1);
    intake.stop();
  });
  EXPECT_FALSE(intake.take());
  stopper.join();
  EXPECT_TRUE(intake.ended());
}

TEST(Intake, EndsWithoutHavingBeenAsked) {
  IntakeCamera camera(1);
  const Intake never_started(camera, 2, 4, 3);
  IntakeCamera waiting(1);
  Intake intake(waiting, 2, 4, 3);
  EXPECT_EQ(intake.ready(), 0u);
}

}  // namespace
}  // namespace riffle

// The live clock against a stream that stalls, bursts and continues.

#include <condition_variable>
#include <cstdlib>
#include <fstream>
#include <mutex>

#include <gtest/gtest.h>
#include <unistd.h>

#include "riffle/base/error.h"
#include "riffle/train/testing/learner.h"

namespace riffle {
namespace {

constexpr std::int64_t kBatch = 8;
constexpr std::int64_t kCapacity = 64;

LearnerConfig live() {
  LearnerConfig config = small_learner();
  config.buffer.capacity = std::to_string(kCapacity);
  config.train.batch = kBatch;
  config.train.max_updates = 0;
  config.train.schedule = ScheduleKind::constant;
  config.train.clock = ClockKind::live;
  return config;
}

// Delivers what it is told to, and waits for more, as a camera does.
class LiveCamera : public Stream {
 public:
  std::optional<Sample> next() override {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return given_ < ready_ || stopped_ || ended_; });
    if (stopped_ || given_ == ready_) return std::nullopt;
    Sample sample;
    sample.picture = Picture(16, 16);
    for (std::size_t i = 0; i < sample.picture.rgb.size(); ++i) {
      sample.picture.rgb[i] = static_cast<std::uint8_t>((i * 7 + given_ * 31) % 251);
    }
    sample.index = static_cast<std::uint64_t>(given_++);
    return sample;
  }
  std::string position() const override { return std::to_string(given_); }
  void seek(const std::string&) override {}
  void stop() override {
    const std::lock_guard lock(mutex_);
    stopped_ = true;
    changed_.notify_all();
  }
  void deliver(std::int64_t samples) {
    const std::lock_guard lock(mutex_);
    ready_ += samples;
    changed_.notify_all();
  }
  void end() {
    const std::lock_guard lock(mutex_);
    ended_ = true;
    changed_.notify_all();
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::int64_t ready_ = 0;
  std::int64_t given_ = 0;
  bool stopped_ = false, ended_ = false;
};

TEST(LiveClock, TrainsOnWhenTheStreamStallsAndTakesWhatArrives) {
  LiveCamera camera;
  camera.deliver(kCapacity);
  Learner learner(live(), camera);
  for (int update = 1; update <= 30; ++update) EXPECT_EQ(learner.advance()->update, update);
  EXPECT_EQ(learner.samples_seen(), kCapacity) << "nothing more came";
  camera.deliver(3 * kBatch);
  while (learner.samples_seen() < kCapacity + 3 * kBatch) ASSERT_TRUE(learner.advance());
  const double waited = learner.waits().learner_s;
  learner.advance();
  EXPECT_EQ(learner.waits().learner_s, waited);
}

TEST(LiveClock, ContinuesFromItsSavedStateWhileTheStreamStalls) {
  LiveCamera camera, again;
  camera.deliver(kCapacity + 2 * kBatch);
  Learner learner(live(), camera);
  while (learner.samples_seen() < kCapacity + 2 * kBatch) ASSERT_TRUE(learner.advance());
  Learner restored(live(), again);
  restored.restore(learner.save());
  const std::vector<Slot> held = learner.buffer().live();
  restored.buffer().put_stored(held, learner.buffer().stored(held));
  for (int update = 0; update < 5; ++update) {
    const auto report = learner.advance(), same = restored.advance();
    ASSERT_TRUE(report && same);
    EXPECT_EQ(same->loss, report->loss);
    EXPECT_EQ(same->update, report->update);
  }
  again.deliver(kBatch);
  while (restored.samples_seen() < kCapacity + 3 * kBatch) ASSERT_TRUE(restored.advance());
}

TEST(LiveClock, EndsWithItsStream) {
  LiveCamera camera;
  camera.deliver(kCapacity + kBatch + 3);
  camera.end();
  Learner learner(live(), camera);
  while (learner.advance()) {
  }
  EXPECT_EQ(learner.samples_seen(), kCapacity + kBatch);
}

TEST(LiveClock, NeedsABuffer) {
  auto config = live();
  config.buffer.policy = "none";
  LiveCamera camera;
  EXPECT_THROW(Learner(config, camera), Error);
}

std::int64_t resident_bytes() {
  std::ifstream statm("/proc/self/statm");
  std::int64_t all = 0, resident = 0;
  statm >> all >> resident;
  return resident * ::sysconf(_SC_PAGESIZE);
}

// RIFFLE_SOAK_SECONDS makes it longer.
TEST(LiveClock, MemoryStaysFlatThroughStallsAndBursts) {
#ifdef __SANITIZE_ADDRESS__
  GTEST_SKIP() << "the sanitizer keeps freed memory for a while, and with it the process grows";
#endif
  using Clock = std::chrono::steady_clock;
  const char* asked = std::getenv("RIFFLE_SOAK_SECONDS");
  const double seconds = asked != nullptr ? std::atof(asked) : 4;
  LiveCamera camera;
  camera.deliver(kCapacity);
  Learner learner(live(), camera);
  const auto start = Clock::now();
  const auto passed = [&] { return std::chrono::duration<double>(Clock::now() - start).count(); };
  std::int64_t warm = 0;
  std::int64_t most = 0;
  constexpr std::int64_t kBetweenBursts = 25;
  while (passed() < seconds || learner.update() < 3 * kBetweenBursts) {
    const auto update = learner.advance()->update;
    // A burst of far more than fits ahead, then nothing for a while.
    if (update % kBetweenBursts == 0) camera.deliver(8 * kBatch);
    if (warm == 0 && passed() > seconds / 4) warm = resident_bytes();
    if (warm > 0 && update % 20 == 0) most = std::max(most, resident_bytes());
  }
  EXPECT_GT(learner.samples_seen(), kCapacity);
  EXPECT_GT(learner.waits().reader_s, 0) << "the burst waited for room";
  RecordProperty("updates", static_cast<int>(learner.update()));
  std::cout << learner.update() << " updates, " << learner.samples_seen() << " samples, "
            << warm / 1024 << " KiB when warm, " << most / 1024 << " KiB at most after\n";
  EXPECT_LT(most - warm, 8 << 20);
}

}  // namespace
}  // namespace riffle

// Run alone and under mpirun as several ranks: several ranks learn what one process learns.
#include <cmath>
#include <condition_variable>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "riffle/base/error.h"
#include "riffle/base/text.h"
#include "riffle/dist/ranks.h"
#include "riffle/model/objective.h"
#include "riffle/train/learner.h"
#include "riffle/train/testing/learner.h"

namespace riffle {
namespace {

constexpr const char* kSource = "synthetic:?frames=6&size=16&seed=1";

// A batch of 24 can be divided by 1, 2, 3 and 4.
LearnerConfig shared_config(const std::string& policy) {
  LearnerConfig config = small_learner(policy);
  config.train.batch = 24;
  config.buffer.capacity = "48";
  config.train.max_updates = 20;
  config.train.schedule = ScheduleKind::constant;
  // At a higher rate the last bits soon part any two trainings of so small a network.
  config.train.lr = 0.01;
  return config;
}

class RanksLearner : public testing::Test {
 protected:
  // Trains as all ranks and, here, as one process.
  void expect_same_training(const LearnerConfig& config, int updates,
                            const std::string& source = kSource) {
    const auto stream = open_stream(source);
    const auto whole_stream = open_stream(source);
    Learner learner(config, *stream, {ranks_});
    Learner whole(config, *whole_stream);
    const at::Tensor first = weights(whole);
    for (int i = 0; i < updates; ++i) {
      const auto report = learner.advance();
      const auto expected = whole.advance();
      ASSERT_TRUE(report);
      ASSERT_TRUE(expected);
      EXPECT_NEAR(report->loss, expected->loss, 1e-4) << "update " << i;
      EXPECT_NEAR(report->std, expected->std, 1e-4);
      EXPECT_EQ(report->samples_seen, expected->samples_seen);
      EXPECT_EQ(report->same_clip_pairs, expected->same_clip_pairs);
    }
    // They went the same way.
    const double moved = (weights(whole) - first).norm().item<double>();
    const double apart = (weights(whole) - weights(learner)).norm().item<double>();
    EXPECT_GT(moved, 0);
    EXPECT_LT(apart, 1e-3 * moved);
  }

  using Open = std::function<std::unique_ptr<Stream>()>;

  static void expect_continues(const LearnerConfig& config, const std::string& source,
                               const Sharing& sharing, int updates = 4) {
    expect_continues(
        config, [&source] { return open_stream(source); }, sharing, updates);
  }
  // Trains on, and beside it from what was saved after `updates`.
  static void expect_continues(const LearnerConfig& config, const Open& open,
                               const Sharing& sharing, int updates) {
    const auto stream = open();
    Learner learner(config, *stream, sharing);
    for (int i = 0; i < updates; ++i) learner.advance();
    const NamedTensors state = learner.save();
    const auto slots = learner.buffer().take_changed();
    const at::Tensor stored = learner.buffer().stored(slots);

    const auto again = open();
    Learner restored(config, *again, sharing);
    restored.restore(state);
    restored.buffer().put_stored(slots, stored);
    for (int i = 0; i < 4; ++i) {
      const auto report = learner.advance();
      const auto same = restored.advance();
      ASSERT_TRUE(report && same);
      EXPECT_EQ(report->loss, same->loss);
      EXPECT_EQ(learner.skipped(), restored.skipped());
    }
  }

  static at::Tensor weights(Learner& learner) {
    std::vector<at::Tensor> flat;
    for (const auto& parameter : learner.objective().parameters()) {
      flat.push_back(parameter.detach().flatten());
    }
    return at::cat(flat).clone();
  }

  Ranks& ranks_ = ranks_of_process();
};

TEST_F(RanksLearner, FollowOneProcessWithTheSameBatch) {
  expect_same_training(shared_config("fifo"), 20);
  expect_same_training(shared_config("none"), 3);
}

// Four ranks with 16 samples each, among others.
TEST_F(RanksLearner, FollowOneProcessWithABatchOf64) {
  LearnerConfig config = shared_config("fifo");
  config.train.batch = 64;
  config.buffer.capacity = "128";
  if (64 % ranks_.size() != 0) GTEST_SKIP() << "64 cannot be divided by " << ranks_.size();
  expect_same_training(config, 20);
}

TEST_F(RanksLearner, FollowOneProcessWithEveryMethod) {
  for (const auto& objective : objective_names()) {
    SCOPED_TRACE(objective);
    LearnerConfig config = shared_config("reservoir");
    config.model.objective = objective;
    expect_same_training(config, 4);
  }
}

TEST_F(RanksLearner, FollowOneProcessWithFreshSamplesAndAGrowingNetwork) {
  LearnerConfig config = shared_config("fifo");
  config.buffer.capacity = "72";
  config.train.fresh = 0.5;
  config.model.grow_every = 2;
  expect_same_training(config, 6);
}

TEST_F(RanksLearner, FollowOneProcessThatKeepsWhatItLearned) {
  LearnerConfig config = shared_config("fifo");
  config.buffer.capacity = "72";
  config.train.fresh = 0.5;
  config.model.align_weight = 1;
  config.model.align_ema = 0.9;
  expect_same_training(config, 5);
}

TEST_F(RanksLearner, NeedFreshSamplesThatCanBeDividedToKeepWhatTheyLearned) {
  if (ranks_.alone()) return;
  LearnerConfig config = shared_config("fifo");
  config.buffer.capacity = "72";
  config.train.fresh = 5.0 / 24;
  const auto stream = open_stream(kSource);
  EXPECT_NO_THROW(Learner(config, *stream, {ranks_}));
  config.model.align_weight = 1;
  EXPECT_THROW(Learner(config, *stream, {ranks_}), Error);
}

// Clips of 7 frames, so that partners come from other ranks; slots that no number of ranks divides.
constexpr const char* kClips = "synthetic:?frames=7&size=16&seed=1";

TEST_F(RanksLearner, FollowOneProcessWithViewsOfTwoFrames) {
  LearnerConfig config = shared_config("reservoir");
  config.augment.temporal = 4;
  config.buffer.capacity = "49";
  expect_same_training(config, 6, kClips);
  config.buffer.storage = Storage::jpeg;
  expect_same_training(config, 3, kClips);
}

TEST_F(RanksLearner, ContinueWithViewsOfTwoFrames) {
  LearnerConfig config = shared_config("fifo");
  config.augment.temporal = 4;
  config.buffer.capacity = "49";
  expect_continues(config, kClips, {ranks_});
}

// Features differ in their last bits, so that after a while another sample may be the most
// redundant: until then histories are the same.
TEST_F(RanksLearner, FollowOneProcessWithFeatures) {
  expect_same_training(shared_config("minred"), 10);
}

TEST_F(RanksLearner, HaveTheSameWeightsWithStatisticsOfTheirOwn) {
  LearnerConfig config = shared_config("fifo");
  config.train.max_updates = 6;
  config.model.sync_batch_norm = false;
  const auto stream = open_stream(kSource);
  Learner learner(config, *stream, {ranks_});
  while (learner.advance()) {
  }
  EXPECT_EQ(learner.update(), 6);
  for (const auto& item : learner.objective().named_parameters()) {
    const at::Tensor sum = ranks_.sum(item.value().detach());
    EXPECT_TRUE(sum.div(ranks_.size()).allclose(item.value(), 1e-6, 1e-7)) << item.key();
  }
  for (const auto& item : learner.objective().named_buffers()) {
    if (!item.value().is_floating_point()) continue;
    const at::Tensor sum = ranks_.sum(item.value());
    EXPECT_TRUE(sum.div(ranks_.size()).allclose(item.value(), 1e-6, 1e-7)) << item.key();
  }
}

TEST_F(RanksLearner, StopTogether) {
  const auto stream = open_stream(kSource);
  Learner learner(shared_config("fifo"), *stream, {ranks_});
  ASSERT_TRUE(learner.advance());
  if (ranks_.rank() == ranks_.size() - 1) learner.stop();
  EXPECT_FALSE(learner.advance());
  EXPECT_TRUE(learner.stopped());
  EXPECT_EQ(learner.update(), 1);
}

// Gives nothing until it is stopped, as a camera without power.
class SilentStream : public Stream {
 public:
  std::optional<Sample> next() override {
    std::unique_lock lock(mutex_);
    asked_ = true;
    changed_.notify_all();
    changed_.wait(lock, [this] { return stopped_; });
    return std::nullopt;
  }
  void stop() override {
    const std::lock_guard lock(mutex_);
    stopped_ = true;
    changed_.notify_all();
  }
  void wait_until_asked() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return asked_; });
  }
  std::string position() const override { return "0"; }
  void seek(const std::string&) override {}

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool asked_ = false;
  bool stopped_ = false;
};

TEST_F(RanksLearner, StopTogetherWhileOneWaitsForItsStream) {
  const bool waits = ranks_.rank() == ranks_.size() - 1;
  SilentStream silent;
  const auto stream = open_stream(kSource);
  Learner learner(shared_config("fifo"), waits ? silent : *stream, {ranks_, /*own_streams=*/true});
  const std::jthread stopper([&] {
    if (!waits) return;
    silent.wait_until_asked();
    learner.stop();
  });
  EXPECT_FALSE(learner.advance()) << "and no complaint that the stream was too short";
  EXPECT_TRUE(learner.stopped());
}

TEST_F(RanksLearner, NameTheRankThatReadOtherPictures) {
  if (ranks_.alone()) return;
  const bool skips = ranks_.rank() == ranks_.size() - 1;
  const auto stream = open_stream(kSource);
  if (skips) stream->next();
  Learner learner(shared_config("fifo"), *stream, {ranks_});
  try {
    learner.advance();
    FAIL() << "one rank is a picture ahead";
  } catch (const StreamError& error) {
    EXPECT_THAT(error.what(), testing::HasSubstr(cat("rank ", ranks_.size() - 1,
                                                     " is at another place in the stream")));
  }
  EXPECT_EQ(learner.samples_seen(), 0);
}

TEST_F(RanksLearner, EndTogetherWithTheShortestStream) {
  LearnerConfig config = shared_config("fifo");
  const auto stream =
      open_stream(kSource, cat("limit:samples=", 24 / ranks_.size() * (ranks_.first() ? 3 : 9)));
  Learner learner(config, *stream, {ranks_, /*own_streams=*/true});
  while (learner.advance()) {
  }
  EXPECT_EQ(learner.samples_seen(), 3 * 24);
  EXPECT_FALSE(learner.stopped());
}

// Throws after some samples, on the last rank.
class BreakingStream : public Stream {
 public:
  BreakingStream(std::unique_ptr<Stream> below, int samples)
      : below_(std::move(below)), left_(samples) {}
  std::optional<Sample> next() override {
    if (left_-- == 0) throw Error("the camera fell off", ErrorKind::failure);
    return below_->next();
  }
  std::string position() const override { return below_->position(); }
  void seek(const std::string& position) override { below_->seek(position); }

 private:
  std::unique_ptr<Stream> below_;
  int left_;
};

TEST_F(RanksLearner, FailTogetherWhenTheStreamOfOneFails) {
  const bool breaks = ranks_.rank() == ranks_.size() - 1;
  BreakingStream stream(open_stream(kSource), breaks ? 24 * 3 : 1000000);
  Learner learner(shared_config("fifo"), stream, {ranks_});
  try {
    while (learner.advance()) {
    }
    FAIL() << "the stream breaks";
  } catch (const StreamError& error) {
    EXPECT_NE(std::string(error.what()).find("the camera fell off"), std::string::npos);
    EXPECT_EQ(error.kind(), ErrorKind::failure);
  }
  EXPECT_EQ(learner.samples_seen(), 3 * 24);
  learner.save();
}

TEST_F(RanksLearner, NeedABatchThatCanBeDivided) {
  if (ranks_.alone()) return;
  LearnerConfig config = shared_config("fifo");
  config.train.batch = 25;
  const auto stream = open_stream(kSource);
  EXPECT_THROW(Learner(config, *stream, {ranks_}), Error);
}

TEST_F(RanksLearner, NameTheRankWhoseWeightsDiffer) {
  if (ranks_.alone()) return;
  const auto stream = open_stream(kSource);
  Learner learner(shared_config("fifo"), *stream, {ranks_});
  if (!ranks_.first()) {
    const torch::NoGradGuard no_gradient;
    learner.objective().parameters()[0].add_(1);
  }
  try {
    learner.advance();
    FAIL() << "weights differ";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("weights of rank 1 differ"), std::string::npos);
  }
}

TEST_F(RanksLearner, ContinueWithStreamsOfTheirOwn) {
  const std::string source = cat("synthetic:?frames=6&size=16&seed=", ranks_.rank());
  const Sharing sharing{ranks_, /*own_streams=*/true};
  expect_continues(shared_config("fifo"), source, sharing);
  expect_continues(shared_config("fifo"), source, sharing, 0);
}

// Skips some items while it is opened and one before each sample, of the reasons of this rank
// alone.
class SkippingStream : public Stream {
 public:
  SkippingStream(const std::string& source, int rank)
      : below_(open_stream(source)), opening_(rank + 1), rank_(rank) {}
  std::optional<Sample> next() override {
    ++met_;
    return below_->next();
  }
  std::string position() const override { return below_->position(); }
  void seek(const std::string& position) override { below_->seek(position); }
  std::map<std::string, std::int64_t> skipped() const override {
    return {{"opening", opening_}, {"met", met_}, {cat("rank ", rank_), met_}};
  }

 private:
  std::unique_ptr<Stream> below_;
  const std::int64_t opening_;
  const int rank_;
  std::int64_t met_ = 0;
};

TEST_F(RanksLearner, NeedTwoSamplesEachUnlessTheyShareStatistics) {
  if (ranks_.alone()) return;
  LearnerConfig config = shared_config("fifo");
  config.train.batch = ranks_.size();
  const auto stream = open_stream(kSource);
  EXPECT_TRUE(Learner(config, *stream, {ranks_}).advance());
  config.model.sync_batch_norm = false;
  EXPECT_THAT([&] { Learner(config, *stream, {ranks_}); },
              testing::ThrowsMessage<Error>(testing::HasSubstr("one sample a rank")));
}

TEST_F(RanksLearner, CountWhatTheStreamsOfAllSkipAlsoWhenTheyContinue) {
  const LearnerConfig config = shared_config("fifo");
  const auto open = [&] { return std::make_unique<SkippingStream>(kSource, ranks_.rank()); };
  const Sharing sharing{ranks_, /*own_streams=*/true};
  for (const int updates : {0, 4}) expect_continues(config, open, sharing, updates);

  const auto stream = open();
  Learner learner(config, *stream, sharing);
  learner.advance();
  std::map<std::string, std::int64_t> expected{{"met", learner.samples_seen()}};
  for (int rank = 0; rank < ranks_.size(); ++rank) {
    expected["opening"] += rank + 1;
    expected[cat("rank ", rank)] = learner.samples_seen() / ranks_.size();
  }
  EXPECT_EQ(learner.skipped(), expected);
}

}  // namespace
}  // namespace riffle

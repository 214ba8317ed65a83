// Run alone and under mpirun as several ranks: all continue a run from the same checkpoint,
// whatever each of them sees.
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "riffle/dist/ranks.h"
#include "riffle/run/testing/runs.h"

namespace riffle {
namespace {

class RanksResume : public RunTest {
 protected:
  RanksResume() {
    // A batch of 24 can be divided by 1, 2, 3 and 4.
    config_.learner.train.batch = 24;
    config_.learner.buffer.capacity = "48";
    config_.learner.train.threads = 1;
    config_.learner.train.max_updates = 6;
    train(config_, run_);
  }
  ~RanksResume() override { ranks_.wait_for_all(); }

  // Returns a copy of the run that only this rank looks at.
  fs::path own_copy() const {
    const fs::path copy = folder_ / "copy";
    fs::copy(run_, copy, fs::copy_options::recursive);
    return copy;
  }

  bool is_set_aside(const std::string& checkpoint) const {
    for (const auto& entry : fs::directory_iterator(run_ / "checkpoints")) {
      const std::string name = entry.path().filename().string();
      if (name.starts_with(checkpoint) && name.ends_with(".damaged")) return true;
    }
    return false;
  }

  Ranks& ranks_ = ranks_of_process();
  const bool is_last_ = ranks_.rank() == ranks_.size() - 1;
  Config config_ = tiny("fifo");
  // Rank 0's, for all.
  const fs::path run_ = ranks_.from_first((folder_ / "run").string());
};

TEST_F(RanksResume, GoesBackOnAllWhereOneCannotReadACheckpoint) {
  if (ranks_.alone()) return;
  const std::string newest = "update-000000006";
  fs::path seen = run_;
  if (is_last_) {
    seen = own_copy();
    fs::resize_file(RunFolder::open(seen).state_file(newest), 100);
  }
  ranks_.wait_for_all();
  EXPECT_EQ(resume(seen, {"train.max_updates=9"}).updates, 9);
  ranks_.wait_for_all();
  EXPECT_TRUE(is_set_aside(newest));
}

TEST_F(RanksResume, TakesTheCheckpointThatRankZeroNames) {
  if (ranks_.alone()) return;
  fs::path seen = run_;
  if (ranks_.first()) {
    seen = own_copy();
    fs::remove(RunFolder::open(seen).manifest("update-000000006"));
  }
  ranks_.wait_for_all();
  EXPECT_EQ(resume(seen, {"train.max_updates=9"}).updates, 9);
}

TEST_F(RanksResume, DividesTheCoresWhereThreadsAreNotGiven) {
  EXPECT_EQ(resume(run_, {"train.threads=0", "train.max_updates=9"}).updates, 9);
  ranks_.wait_for_all();
  EXPECT_EQ(RunFolder::open(run_).config().learner.train.threads, threads_per_rank(ranks_));
}

TEST_F(RanksResume, NeedsTheSameConfigurationOnAll) {
  if (ranks_.alone()) return;
  const std::string end = is_last_ ? "9" : "8";
  EXPECT_THAT([&] { resume(run_, {"train.max_updates=" + end}); },
              testing::ThrowsMessage<Error>(testing::HasSubstr(
                  cat("the configuration and version of rank ", ranks_.size() - 1, " differ"))));
}

}  // namespace
}  // namespace riffle

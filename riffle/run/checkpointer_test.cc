// When checkpoints are made, by the disk's speed.

#include "riffle/run/checkpointer.h"

#include <atomic>
#include <cerrno>
#include <chrono>
#include <fstream>
#include <iterator>
#include <memory>
#include <optional>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "riffle/base/error.h"
#include "riffle/base/file_faults.h"
#include "riffle/dist/ranks.h"
#include "riffle/run/testing/runs.h"
#include "riffle/train/shared_stream.h"

namespace riffle {
namespace {

using CheckpointerTest = RunTest;

// Not through riffle's own files, which ask about faults.
std::ptrdiff_t read_lines(const fs::path& path) {
  std::ifstream in(path);
  return std::count(std::istreambuf_iterator<char>(in), {}, '\n');
}

TEST_F(CheckpointerTest, ThatWaitsForTheDiskHasACheckpointOfEveryUpdateDue) {
  Config config = tiny("minred");
  config.checkpoint.every = 2;
  {
    // Slower than the updates.
    const FileFaults faults([](FileStep step, const fs::path& path) {
      if (step == FileStep::sync && path.filename().string().starts_with(".update-")) {
        std::this_thread::sleep_for(std::chrono::milliseconds(20));
      }
      return FileFault{};
    });
    train(config, folder_ / "run");
  }
  std::vector<std::string> expected;
  for (std::int64_t update = 2; update <= 20; update += 2) {
    expected.push_back(RunFolder::checkpoint_name(update, 0));
  }
  EXPECT_EQ(RunFolder::open(folder_ / "run").checkpoint_names(), expected);
  const fs::path killed = killed_after(folder_ / "run", "update-000000006");
  resume(killed);
  EXPECT_EQ(RunFolder::open(killed).checkpoint_names(), expected);
  expect_same(killed, folder_ / "run");
}

TEST_F(CheckpointerTest, TrainingDoesNotWaitForACheckpointThatIsBeingWritten) {
  Config config = tiny("minred");
  config.checkpoint.wait = false;
  const fs::path run = folder_ / "run";
  bool went_on = false;
  std::string first;
  {
    // The first one, of update 1 unless the machine is busy, is not written before the last update
    // is made.
    const FileFaults faults([&](FileStep step, const fs::path& path) {
      const std::string name = path.filename().string();
      if (step == FileStep::sync && name.starts_with(".update-") && first.empty()) {
        first = name.substr(1, RunFolder::checkpoint_name(1, 0).size());
        const auto start = std::chrono::steady_clock::now();
        while (!went_on && std::chrono::steady_clock::now() - start < std::chrono::seconds(60)) {
          went_on = read_lines(run / "metrics.jsonl") == 20;
          std::this_thread::sleep_for(std::chrono::milliseconds(1));
        }
      }
      return FileFault{};
    });
    train(config, run);
  }
  EXPECT_TRUE(went_on);
  EXPECT_THAT(RunFolder::open(run).checkpoint_names(),
              testing::ElementsAre(first, "update-000000020"));
}

Config endless() {
  Config config = tiny("fifo");
  config.learner.train.max_updates = 0;
  config.learner.train.schedule = ScheduleKind::constant;
  config.checkpoint.wait = false;
  return config;
}

// A run in its first update, with checkpoints on demand.
struct BegunRun {
  BegunRun(const fs::path& path, Config started)
      : config(std::move(started)),
        folder(RunFolder::create(path, config)),
        stream(open_stream(config.stream)),
        learner(config.learner, *stream),
        checkpointer(
            folder, config, learner,
            {folder.checkpoints(), learner.buffer().slots(), learner.buffer().stored_bytes()}, "") {
    while (learner.fill()) {
    }
    learner.advance();
  }
  const Config config;
  const RunFolder folder;
  const std::unique_ptr<Stream> stream;
  Learner learner;
  Checkpointer checkpointer;
};

TEST_F(CheckpointerTest, PicturesThatTheDiskCannotFollowCostTimeRatherThanAllCheckpoints) {
  Config config = endless();
  config.learner.train.updates = 1;
  config.learner.picture_size = 512;  // so that a part of the buffer is handed over at once
  std::atomic<bool> stuck = true;
  const auto start = std::chrono::steady_clock::now();
  const FileFaults faults([&](FileStep step, const fs::path& path) {
    while (stuck && step == FileStep::write && path.filename().string().starts_with("pictures-") &&
           std::chrono::steady_clock::now() - start < std::chrono::seconds(60)) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    return FileFault{};
  });
  BegunRun run(folder_ / "run", config);
  const auto train_on = [&](bool due) {
    ASSERT_TRUE(run.learner.advance());
    run.checkpointer.keep_up(due, 0);
  };
  for (int update = 0; update < 12; ++update) train_on(false);
  train_on(true);
  EXPECT_EQ(run.checkpointer.status().last, "") << "the first one is put off";
  stuck = false;
  train_on(true);
  const auto name = RunFolder::checkpoint_name(run.learner.update(), 0);
  train_on(false);
  run.checkpointer.wait();
  EXPECT_EQ(run.checkpointer.status().last, name);
}

TEST_F(CheckpointerTest, WhatFailedIsTriedAgainBeforeTheNextOneIsDue) {
  BegunRun run(folder_ / "run", endless());
  {
    const FileFaults faults([](FileStep step, const fs::path& path) {
      return FileFault{step == FileStep::rename && path.extension() == ".json" ? EIO : 0};
    });
    run.checkpointer.keep_up(/*due=*/true, 0);
    run.checkpointer.wait();
  }
  EXPECT_EQ(run.checkpointer.status().failures, 1);
  const auto start = std::chrono::steady_clock::now();
  while (run.checkpointer.status().last.empty()) {
    ASSERT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(60));
    run.learner.advance();
    run.checkpointer.keep_up(/*due=*/false, 0);
  }
  EXPECT_EQ(run.checkpointer.status().failures, 1);
}

TEST_F(CheckpointerTest, OneWhoseLastFlushFailedIsNotThere) {
  BegunRun run(folder_ / "run", endless());
  run.checkpointer.finish(0);
  const auto names = run.folder.checkpoint_names();
  run.learner.advance();
  const fs::path manifest = run.folder.manifest(RunFolder::checkpoint_name(2, 0));
  {
    // Of the folder, when the manifest has its name already.
    const FileFaults faults([&](FileStep step, const fs::path& path) {
      const bool last = path == run.folder.checkpoints() && fs::exists(manifest);
      return FileFault{step == FileStep::sync && last ? EIO : 0};
    });
    EXPECT_THROW(run.checkpointer.finish(0), Error);
  }
  EXPECT_EQ(run.folder.checkpoint_names(), names);
  run.checkpointer.finish(0);
  EXPECT_EQ(run.folder.checkpoint_names().size(), 2u);
}

// Run alone and under mpirun as several ranks.
class RanksCheckpointer : public CheckpointerTest {
 protected:
  RanksCheckpointer() {
    // A batch of 24 can be divided by 1, 2, 3 and 4.
    config_.learner.train.batch = 24;
    config_.learner.buffer.capacity = "48";
  }
  ~RanksCheckpointer() override { ranks_.wait_for_all(); }

  RunFolder open_run() const {
    std::optional<RunFolder> made;
    if (ranks_.first()) made = RunFolder::create(path_, config_);
    ranks_.wait_for_all();
    return made ? *made : RunFolder::open_beside(path_);
  }

  struct FilledRun {
    FilledRun(const Config& config, RunFolder opened, Ranks& ranks)
        : folder(std::move(opened)),
          source(open_rank_stream(config.stream, config.shapes, ranks)),
          learner(config.learner, *source.stream, source.sharing),
          checkpointer(folder, config, learner,
                       PictureLog(folder.checkpoints(), learner.buffer().slots(),
                                  learner.buffer().stored_bytes(), {ranks.rank(), ranks.size()}),
                       "") {
      while (learner.fill()) {
      }
    }

    void train_on(bool due) {
      ASSERT_TRUE(learner.advance());
      checkpointer.keep_up(due, 0);
      checkpointer.wait();
    }

    const RunFolder folder;
    const RankStream source;
    Learner learner;
    Checkpointer checkpointer;
  };

  Ranks& ranks_ = ranks_of_process();
  Config config_ = endless();
  // Rank 0's, for all.
  const fs::path path_ = ranks_.from_first((folder_ / "run").string());
};

TEST_F(RanksCheckpointer, AFullDiskIsNotAskedAtEveryUpdate) {
  FilledRun run(config_, open_run(), ranks_);
  {
    std::atomic<int> tries = 0;
    const FileFaults faults([&](FileStep step, const fs::path& path) {
      const bool full =
          step == FileStep::write && path.filename().string().starts_with("pictures-");
      if (full) ++tries;
      return FileFault{full ? ENOSPC : 0};
    });
    const auto start = std::chrono::steady_clock::now();
    for (int update = 0; update < 30; ++update) run.train_on(/*due=*/false);
    // After pauses of 1, 2, 4, ... seconds.
    const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
    EXPECT_GE(tries, 1);
    EXPECT_LE(tries, 1 + seconds.count());
  }
  if (ranks_.alone()) return;
  // Ranks make a checkpoint when it is due, pause or not.
  run.checkpointer.keep_up(/*due=*/true, 0);
  run.checkpointer.wait();
  ranks_.wait_for_all();
  EXPECT_EQ(run.folder.checkpoint_names().size(), 1u);
}

TEST_F(RanksCheckpointer, AFailureAfterACheckpointPausesForAMomentAgain) {
  if (ranks_.alone()) return;
  FilledRun run(config_, open_run(), ranks_);
  std::atomic<bool> full = true;
  const FileFaults faults([&](FileStep step, const fs::path& path) {
    const bool fails =
        full && step == FileStep::write && path.filename().string().starts_with("pictures-");
    return FileFault{fails ? ENOSPC : 0};
  });
  for (int failure = 0; failure < 6; ++failure) run.train_on(/*due=*/true);
  full = false;
  run.train_on(/*due=*/true);
  ranks_.wait_for_all();
  ASSERT_EQ(run.folder.checkpoint_names().size(), 1u);

  full = true;
  const auto before = run.checkpointer.status();
  while (ranks_.any(run.checkpointer.status().failures == before.failures)) {
    run.train_on(/*due=*/false);
  }
  full = false;
  const auto start = std::chrono::steady_clock::now();
  const auto late = [&] {
    return std::chrono::steady_clock::now() - start > std::chrono::seconds(20);
  };
  while (ranks_.any(run.checkpointer.status().picture_bytes == before.picture_bytes)) {
    ASSERT_FALSE(ranks_.any(late())) << "the pause is still as long as before the checkpoint";
    run.train_on(/*due=*/false);
  }
}

}  // namespace
}  // namespace riffle

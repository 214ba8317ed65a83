// A run whose folder is moved, replaced or removed under it stops, and writes into no other run.

#include <atomic>
#include <fstream>
#include <functional>
#include <map>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "riffle/base/file_faults.h"
#include "riffle/run/testing/runs.h"

namespace riffle {
namespace {

using testing::HasSubstr;
using testing::ThrowsMessage;

class LostFolderTest : public RunTest {
 protected:
  LostFolderTest() { train(tiny("fifo"), folder_ / "whole"); }

  // Trains in `run_`; `change` happens just before the 5th checkpoint is written, on the thread
  // that writes.
  void train_while(const std::function<void()>& change) const {
    std::atomic<int> flushed = 0;
    const FileFaults watch([&](FileStep step, const fs::path& path) {
      if (step == FileStep::sync && path == run_ / "metrics.jsonl" && ++flushed == 5) change();
      return FileFault{};
    });
    EXPECT_THAT([&] { train(tiny("fifo"), run_); },
                ThrowsMessage<LostLock>(HasSubstr("was moved or removed")));
    EXPECT_EQ(flushed, 5);
  }

  static std::map<fs::path, std::string> content_of(const fs::path& folder) {
    std::map<fs::path, std::string> content;
    for (const auto& entry : fs::recursive_directory_iterator(folder)) {
      if (!entry.is_regular_file()) continue;
      std::ifstream in(entry.path(), std::ios::binary);
      content[entry.path()] = {std::istreambuf_iterator<char>(in), {}};
    }
    return content;
  }

  void expect_continues(const fs::path& run) const {
    resume(run);
    expect_same(run, folder_ / "whole");
  }

  const fs::path run_ = folder_ / "run";
};

TEST_F(LostFolderTest, ARunThatWasMovedAwayDoesNotWriteIntoItsSuccessor) {
  std::map<fs::path, std::string> successor;
  train_while([&] {
    fs::rename(run_, folder_ / "away");
    fs::copy(folder_ / "whole", run_, fs::copy_options::recursive);
    successor = content_of(run_);
  });
  EXPECT_EQ(content_of(run_), successor);
  expect_continues(folder_ / "away");
}

TEST_F(LostFolderTest, ARunWhoseLockIsGoneLeavesTheFolderToOthers) {
  std::map<fs::path, std::string> before;
  train_while([&] {
    fs::remove(run_ / "lock");
    before = content_of(run_ / "checkpoints");
  });
  EXPECT_EQ(content_of(run_ / "checkpoints"), before);
  expect_continues(run_);
}

TEST_F(LostFolderTest, ARunWhoseFolderIsRemovedIsNotDone) {
  train_while([&] { fs::remove_all(run_); });
  EXPECT_FALSE(fs::exists(run_));
}

TEST_F(LostFolderTest, WhoeverWorksBesideTheHolderOfTheLockNoticesToo) {
  const auto holder = RunFolder::create(run_, tiny("fifo"));
  const auto beside = RunFolder::open_beside(run_);
  beside.require_in_place();
  fs::rename(run_, folder_ / "away");
  EXPECT_THROW(beside.require_in_place(), LostLock);
  fs::copy(folder_ / "away", run_, fs::copy_options::recursive);
  EXPECT_THROW(beside.require_in_place(), LostLock);
}

}  // namespace
}  // namespace riffle

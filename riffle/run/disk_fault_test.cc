// Training on a failing disk continues, says so, and loses nothing that was durable.

#include <atomic>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "riffle/base/error.h"
#include "riffle/base/file_faults.h"
#include "riffle/run/testing/runs.h"

namespace riffle {
namespace {

using testing::HasSubstr;
using DiskFaultTest = RunTest;

bool in_checkpoints(const fs::path& path) {
  return path.string().find("checkpoints") != std::string::npos;
}

constexpr int kListedBefore = 5;  // times that checkpoints/ is listed before a run begins

// Decides for all steps on files below checkpoints/, counted from 1.
FileFaults::Decide at_steps(FileStep which, std::function<bool(int)> fails, int error) {
  auto count = std::make_shared<std::atomic<int>>(0);
  return [=](FileStep step, const fs::path& path) {
    const bool counts = step == which && in_checkpoints(path);
    return FileFault{counts && fails(++*count) ? error : 0};
  };
}

TEST_F(DiskFaultTest, PassingFaultsChangeNothingInTheEnd) {
  const Config config = tiny("minred");
  train(config, folder_ / "whole");
  struct Fault {
    const char* name;
    FileFaults::Decide decide;
  };
  const auto every = [](int n) { return [n](int count) { return count % n == 0; }; };
  const std::vector<Fault> faults = {
      {"full", at_steps(
                   FileStep::write, [](int count) { return count > 6 && count < 9; }, ENOSPC)},
      {"flush", at_steps(
                    FileStep::sync, [](int count) { return count < 3; }, EIO)},
      {"rename", at_steps(
                     FileStep::rename, [](int count) { return count == 2; }, EIO)},
      {"open", at_steps(
                   FileStep::open, [](int count) { return count == 3; }, EMFILE)},
      {"read", at_steps(FileStep::read, every(3), EIO)},
      {"list",
       at_steps(
           FileStep::list, [](int count) { return count > kListedBefore && count % 2 == 0; }, EIO)},
      {"short", [](FileStep, const fs::path&) {
         return FileFault{0, 1000};
       }}};
  for (const auto& [name, decide] : faults) {
    const fs::path run = folder_ / name;
    try {
      const FileFaults active(decide);
      train(config, run);
    } catch (const Error& error) {
      // The last write of all may have met the fault; then an error says so, and resume continues.
      EXPECT_THAT(error.what(), HasSubstr("riffle resume")) << name;
    }
    resume(run);
    expect_same(run, folder_ / "whole");
  }
}

TEST_F(DiskFaultTest, ADiskThatStaysFullStopsCheckpointsNotTraining) {
  Config config = tiny("reservoir");
  config.learner.train.max_updates = 200;
  config.checkpoint.keep = 2;
  config.checkpoint.wait = false;
  train(config, folder_ / "whole");
  const fs::path run = folder_ / "run";
  std::atomic<bool> full = false;
  testing::internal::CaptureStderr();
  set_log_level(LogLevel::warnings);
  {
    const FileFaults faults([&](FileStep step, const fs::path& path) {
      if (step == FileStep::rename && path.filename() >= "update-000000004") full = true;
      return FileFault{full && step == FileStep::write && in_checkpoints(path) ? ENOSPC : 0};
    });
    // The run itself is not to blame, but whoever started it must know.
    EXPECT_THAT([&] { train(config, run); },
                testing::ThrowsMessage<Error>(testing::AllOf(HasSubstr("checkpoint of update 200"),
                                                             HasSubstr("No space left"))));
  }
  set_log_level(LogLevel::quiet);
  EXPECT_THAT(testing::internal::GetCapturedStderr(), HasSubstr("no checkpoint could be written"));
  const auto lines = split(read_text(run / "metrics.jsonl"), '\n');
  EXPECT_EQ(lines.size(), 201u) << "all updates were made and written down";
  EXPECT_GT(nlohmann::json::parse(lines[199])["checkpoint_failures"], 0);
  resume(run);
  expect_same(run, folder_ / "whole");
}

TEST_F(DiskFaultTest, ARunContinuesWithADiskThatIsFullFromTheStart) {
  const Config config = tiny("minred");
  train(config, folder_ / "whole");
  const fs::path run = killed_after(folder_ / "whole", "update-000000007");
  {
    const FileFaults faults([&](FileStep step, const fs::path&) {
      return FileFault{step == FileStep::write ? ENOSPC : 0};
    });
    EXPECT_THAT([&] { resume(run); },
                testing::ThrowsMessage<Error>(testing::AllOf(HasSubstr("checkpoint of update 20"),
                                                             HasSubstr("No space left"))));
  }
  EXPECT_EQ(RunFolder::open(run).checkpoint_names().back(), "update-000000007");
  resume(run);
  expect_same(run, folder_ / "whole");
}

TEST_F(DiskFaultTest, MetricsThatCannotBeWrittenAreLeftOut) {
  const Config config = tiny("fifo");
  const fs::path run = folder_ / "run";
  {
    int writes = 0;
    const FileFaults faults([&](FileStep step, const fs::path& path) {
      const bool line = step == FileStep::write && path.filename() == "metrics.jsonl";
      return FileFault{line && ++writes > 3 && writes < 8 ? ENOSPC : 0};
    });
    EXPECT_EQ(train(config, run).updates, 20);
  }
  EXPECT_EQ(metrics_of(run).size(), 16u);
}

TEST_F(DiskFaultTest, AnUnreadableFolderForTensorBoardDoesNotEndTheRun) {
  const FileFaults faults([](FileStep step, const fs::path& path) {
    return FileFault{step == FileStep::list && path.filename() == "run" ? EIO : 0};
  });
  EXPECT_EQ(train(tiny("fifo"), folder_ / "run").updates, 20);
}

// Starting again would write over what is there.
TEST_F(DiskFaultTest, CheckpointsThatCannotBeListedAreNotMissing) {
  const Config config = tiny("minred");
  train(config, folder_ / "whole");
  const fs::path run = killed_after(folder_ / "whole", "update-000000010");
  {
    const FileFaults faults(at_steps(
        FileStep::list, [](int) { return true; }, ESTALE));
    EXPECT_THAT([&] { resume(run); }, testing::ThrowsMessage<Error>(HasSubstr("cannot list")));
  }
  resume(run);
  expect_same(run, folder_ / "whole");
}

TEST_F(DiskFaultTest, WhileCheckpointsCannotBeListedNoPictureOfTheirsIsRemoved) {
  const fs::path run = folder_ / "run";
  {
    const FileFaults faults(at_steps(
        FileStep::list, [](int count) { return count > kListedBefore; }, EIO));
    train(tiny("fifo"), run);  // whose old segments die as a whole
  }
  for (const auto& name : some_checkpoints(run, 5)) {
    EXPECT_NO_THROW(state_of(killed_after(run, name))) << name;
  }
}

}  // namespace
}  // namespace riffle

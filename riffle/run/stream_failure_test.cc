// A stream that fails in the middle of a run costs only time: what was learned is kept, and once
// the stream works again the run ends as one that never failed.

#include <atomic>
#include <cerrno>
#include <fstream>
#include <utility>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "riffle/base/error.h"
#include "riffle/base/file_faults.h"
#include "riffle/image/codec.h"
#include "riffle/run/testing/runs.h"
#include "riffle/stream/uri.h"

namespace riffle {
namespace {

using testing::AllOf;
using testing::HasSubstr;

class StreamFailureTest : public RunTest {
 protected:
  void put_pictures(int count) const {
    fs::create_directories(photos_);
    for (int i = 0; i < count; ++i) {
      Picture picture(16, 16);
      for (std::size_t at = 0; at < picture.rgb.size(); ++at) {
        picture.rgb[at] = static_cast<std::uint8_t>(at * static_cast<std::size_t>(i + 3) % 251);
      }
      const auto bytes = encode_png(picture);
      std::ofstream out(photos_ / cat(1000 + i, ".png"), std::ios::binary);
      out.write(reinterpret_cast<const char*>(bytes.data()), std::ssize(bytes));
    }
  }

  // Learns from the folder without a checkpoint on the way.
  Config learning(const std::string& options, const std::string& shapes = "") const {
    Config config = tiny("minred");
    config.stream = cat("folder:", encode_percent(photos_.string()), "?", options);
    config.shapes = shapes;
    config.learner.train.max_updates = 40;
    config.checkpoint.every = 1000;
    return config;
  }

  // Trains until the folder is taken away, which happens with the first line of metrics. Returns
  // what was thrown. `then` decides about each step of the file layer from that moment on.
  Error failure_of(const Config& config, const fs::path& run,
                   const FileFaults::Decide& then = {}) const {
    std::atomic<bool> taken = false;
    const FileFaults watch([&](FileStep step, const fs::path& path) {
      if (step == FileStep::write && path.filename() == "metrics.jsonl" && !taken.exchange(true)) {
        fs::rename(photos_, away_);
      }
      return taken && then ? then(step, path) : FileFault{};
    });
    try {
      train(config, run);
    } catch (const Error& error) {
      return error;
    }
    return Error("nothing failed");
  }

  const fs::path photos_ = folder_ / "photos", away_ = folder_ / "away", run_ = folder_ / "run";
};

struct Source {
  std::string name;
  int pictures;
  std::string options, shapes;
};

class AnyStreamFailure : public StreamFailureTest, public testing::WithParamInterface<Source> {};

TEST_P(AnyStreamFailure, LeavesACheckpointFromWhichTheRunEndsAsIfNothingHadHappened) {
  put_pictures(GetParam().pictures);
  const Config config = learning(GetParam().options, GetParam().shapes);
  train(config, folder_ / "whole");

  const Error error = failure_of(config, run_);
  EXPECT_THAT(error.what(), AllOf(HasSubstr("photos is gone or empty"),
                                  HasSubstr("riffle resume " + run_.string())));
  EXPECT_EQ(error.kind(), ErrorKind::failure);
  const auto names = RunFolder::open(run_).checkpoint_names();
  ASSERT_EQ(names.size(), 1u);
  EXPECT_EQ(read_checkpoint(RunFolder::open(run_), names[0]).update, std::ssize(metrics_of(run_)));

  EXPECT_THROW(resume(run_), Error) << "the folder is still away";
  EXPECT_EQ(RunFolder::open(run_).checkpoint_names(), names);
  fs::rename(away_, photos_);
  EXPECT_EQ(resume(run_).updates, 40);
  expect_same(run_, folder_ / "whole");
}

INSTANTIATE_TEST_SUITE_P(Of, AnyStreamFailure,
                         testing::Values(Source{"a_folder", 160, "threads=0", ""},
                                         Source{"a_folder_in_a_loop", 30, "threads=2", "loop:"}),
                         [](const auto& source) { return source.param.name; });

TEST_F(StreamFailureTest, UnderTheLiveClockLeavesACheckpointToo) {
  put_pictures(40);
  for (const bool watched : {false, true}) {
    const fs::path run = folder_ / cat("live-", watched);
    Config config = watched ? learning("watch=1") : learning("threads=2", "loop:");
    config.learner.train.clock = ClockKind::live;
    config.learner.train.max_updates = 0;
    config.learner.train.schedule = ScheduleKind::constant;
    EXPECT_THAT(failure_of(config, run).what(),
                AllOf(HasSubstr("photos is gone"), HasSubstr("riffle resume " + run.string())));
    fs::rename(away_, photos_);
    const auto folder = RunFolder::open(run);
    ASSERT_EQ(folder.checkpoint_names().size(), 1u);
    const auto update = read_checkpoint(folder, folder.checkpoint_names()[0]).update;
    EXPECT_EQ(update, std::ssize(metrics_of(run)));
    EXPECT_EQ(resume(run, {cat("train.max_updates=", update + 5)}).updates, update + 5);
  }
}

TEST_F(StreamFailureTest, IsToldTogetherWithADiskThatIsFull) {
  put_pictures(30);
  const auto full = [](FileStep step, const fs::path& path) {
    return FileFault{
        step == FileStep::write && path.string().find("checkpoints") != std::string::npos ? ENOSPC
                                                                                          : 0};
  };
  EXPECT_THAT(failure_of(learning("", "loop:"), run_, full).what(),
              AllOf(HasSubstr("photos is gone or empty"), HasSubstr("No space left on device"),
                    HasSubstr("riffle resume " + run_.string())));
}

TEST_F(StreamFailureTest, BeforeTheFirstBatchARunCanContinueToo) {
  put_pictures(30);
  const Config config = learning("", "loop:");
  train(config, folder_ / "whole");
  bool taken = false;
  {
    // The folder goes when it has been listed.
    const FileFaults watch([&](FileStep, const fs::path& path) {
      if (path.filename() == "config.yaml" && !std::exchange(taken, true)) {
        fs::rename(photos_, away_);
      }
      return FileFault{};
    });
    EXPECT_THAT([&] { train(config, run_); },
                testing::ThrowsMessage<Error>(HasSubstr("riffle resume " + run_.string())));
  }
  ASSERT_TRUE(taken);
  fs::rename(away_, photos_);
  resume(run_);
  expect_same(run_, folder_ / "whole");
}

TEST_F(StreamFailureTest, OfAStreamWithNothingOfUseIsBadInputAndLeavesNoCheckpoint) {
  fs::create_directories(photos_);
  std::ofstream(photos_ / "1.png") << "not a picture";
  try {
    train(learning(""), run_);
    ADD_FAILURE() << "nothing failed";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::bad_input);
    EXPECT_THAT(error.what(), HasSubstr("can be decoded"));
  }
  EXPECT_TRUE(RunFolder::open(run_).checkpoint_names().empty());
}

}  // namespace
}  // namespace riffle

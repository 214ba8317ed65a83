// Run folders in which somebody put links or pipes in the place of a run's files.

#include <chrono>
#include <functional>
#include <future>

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include "riffle/base/error.h"
#include "riffle/run/metrics_history.h"
#include "riffle/run/probe_record.h"
#include "riffle/run/status_file.h"
#include "riffle/run/testing/runs.h"

namespace riffle {
namespace {

using testing::HasSubstr;
using testing::ThrowsMessage;

class LinkedFilesTest : public RunTest {
 protected:
  LinkedFilesTest() {
    train(tiny("fifo"), run_);
    write_atomically(victim_, "precious\n");
  }
  ~LinkedFilesTest() override { EXPECT_EQ(read_text(victim_), "precious\n"); }

  void replace_by_link(const fs::path& path) const {
    fs::remove(path);
    fs::create_symlink(victim_, path);
  }

  const fs::path run_ = folder_ / "run";
  const fs::path victim_ = folder_ / "victim";
};

TEST_F(LinkedFilesTest, NothingIsWrittenThroughThem) {
  const auto refused = ThrowsMessage<Error>(HasSubstr("riffle does not write through it"));
  for (const char* name : {"lock", "metrics.jsonl"}) {
    const fs::path linked = folder_ / name;
    fs::copy(run_, linked, fs::copy_options::recursive);
    replace_by_link(linked / name);
    EXPECT_THAT([&] { resume(linked, {"train.max_updates=21"}); }, refused) << name;
  }
  replace_by_link(run_ / "probes.jsonl");
  EXPECT_THAT([&] { append_probe(RunFolder::open(run_), {}); }, refused);
}

TEST_F(LinkedFilesTest, TheStatusIsNotWrittenThroughALinkInItsTemporarysPlace) {
  const auto folder = RunFolder::open(run_);
  fs::create_symlink(victim_, temporary_path(folder.status()));
  {
    const StatusFile status(folder, [](RunStatus&) {});
  }
  fs::remove(temporary_path(folder.status()));
  replace_by_link(folder.status());
  {
    const StatusFile status(folder, [](RunStatus&) {});
  }
  EXPECT_TRUE(fs::is_regular_file(fs::symlink_status(folder.status()))) << "the link is replaced";
}

TEST_F(LinkedFilesTest, AnotherRunsCheckpointsAreNotContinued) {
  const fs::path linked = folder_ / "linked";
  fs::create_directory(linked);
  fs::copy(run_ / "config.yaml", linked);
  fs::create_directory_symlink(run_ / "checkpoints", linked / "checkpoints");
  EXPECT_THAT([&] { resume(linked, {"train.max_updates=21"}); },
              ThrowsMessage<Error>(HasSubstr("is a symbolic link")));
  EXPECT_EQ(RunFolder::open(run_).checkpoint_names().back(), "update-000000020");
}

TEST_F(LinkedFilesTest, PipesAreNotWaitedFor) {
  const auto folder = RunFolder::open(run_);
  const auto newest = folder.checkpoint_names().back();
  const std::vector<std::pair<fs::path, std::function<void()>>> reads = {
      {folder.status(), [&] { EXPECT_FALSE(read_status(folder)); }},
      {folder.probes(), [&] { read_probes(folder); }},
      {folder.metrics(), [&] { read_metrics(folder.metrics()); }},
      {folder.metrics(), [&] { newest_update(folder.metrics()); }},
      {folder.manifest(newest), [&] { read_checkpoint(folder, newest); }},
      {run_ / "config.yaml", [&] { folder.config(); }}};
  for (const auto& [path, read] : reads) {
    fs::remove(path);
    ASSERT_EQ(::mkfifo(path.c_str(), 0644), 0);
    const auto reading = std::async(std::launch::async, [&] {
      try {
        read();
      } catch (const Error& error) {
        EXPECT_THAT(error.what(), HasSubstr("is not a regular file"));
      }
    });
    if (reading.wait_for(std::chrono::seconds(20)) == std::future_status::ready) continue;
    ADD_FAILURE() << path << " is waited for";
    Descriptor(path, O_WRONLY);  // so that the reader ends
  }
}

TEST_F(LinkedFilesTest, OnlyNamesOfCheckpointsAreTakenForOnes) {
  const fs::path checkpoints = run_ / "checkpoints";
  const auto before = RunFolder::open(run_).checkpoint_names();
  for (const char* name : {"\x1b[31mred", "update-5", "update-00000000x", "update--00000001",
                           "update-0000000099", "zzz", ".update-000000099", "fill-"}) {
    for (const char* ending : {".json", ".safetensors"}) {
      fs::copy(victim_, checkpoints / (std::string(name) + ending));
    }
  }
  const auto folder = RunFolder::open_to_write(run_);
  EXPECT_EQ(folder.checkpoint_names(), before);
  EXPECT_EQ(folder.latest_checkpoint(), folder.state_file(before.back()));
  folder.remove_uncommitted();
  EXPECT_TRUE(fs::exists(checkpoints / "zzz.safetensors")) << "it is not riffle's";
}

}  // namespace
}  // namespace riffle

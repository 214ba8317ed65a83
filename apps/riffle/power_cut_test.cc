// Runs after a power cut: what a disk may have kept of the steps of a real run, resumed to its end.

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <string>
#include <vector>

#include "apps/riffle/testing/crash_replay.h"
#include "apps/riffle/testing/durability.h"
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace riffle {
namespace {

class PowerCut : public DurabilityTest {
 protected:
  void SetUp() override {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    GTEST_SKIP() << "the recorder cannot stand before a sanitizer";
#endif
    fs::create_directory(disk());
  }

  fs::path disk() const { return folder_ / "disk"; }

  // What is started while this lives is recorded.
  class Recording {
   public:
    explicit Recording(const PowerCut& test) {
      ::setenv("RIFFLE_RECORD_FOLDER", test.disk().c_str(), 1);
      ::setenv("RIFFLE_RECORD_LOG", (test.folder_ / "steps").c_str(), 1);
      ::setenv("LD_PRELOAD", RIFFLE_RECORD_WRITES, 1);
    }
    ~Recording() {
      for (const char* name : {"LD_PRELOAD", "RIFFLE_RECORD_LOG", "RIFFLE_RECORD_FOLDER"}) {
        ::unsetenv(name);
      }
    }
  };

  // All steps of a run that was stopped once on its way and then resumed to its end.
  std::vector<DiskStep> recorded_run() const {
    {
      const Recording recording(*this);
      auto stopped = train("disk/run", kShort);
      wait_for("disk/run/metrics.jsonl", stopped);
      stopped.signal(SIGTERM);
      EXPECT_EQ(stopped.ended(kDeadline), 0) << stopped.errors();
      auto resumed = resume("disk/run");
      EXPECT_EQ(resumed.ended(kDeadline), 0) << resumed.errors();
    }
    return read_disk_steps(folder_ / "steps");
  }

  const std::vector<std::string> kShort = {"--max-updates", "60"};
};

std::map<std::string, std::string> files_in(const fs::path& folder) {
  std::map<std::string, std::string> files;
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    files[entry.path().lexically_relative(folder)] =
        entry.is_directory() ? "folder" : content(entry.path());
  }
  return files;
}

// RIFFLE_POWER_CUTS says how many; a few without.
TEST_F(PowerCut, ARunResumesToTheSameEndWhateverTheDiskKept) {
  const char* asked = std::getenv("RIFFLE_POWER_CUTS");
  const std::uint64_t wanted = asked != nullptr ? std::strtoull(asked, nullptr, 10) : 3;
  auto whole = train("whole", kShort);
  ASSERT_EQ(whole.ended(kDeadline), 0) << whole.errors();
  const auto steps = recorded_run();
  ASSERT_GT(steps.size(), 200u);

  // Nothing was overlooked: without losses the steps make the folder that is there.
  ReplayedDisk(steps).write(disk(), folder_ / "replayed", {nullptr, 1});
  const auto real = files_in(disk()), replayed = files_in(folder_ / "replayed");
  ASSERT_EQ(real.size(), replayed.size());
  for (const auto& [name, bytes] : real) ASSERT_TRUE(replayed.at(name) == bytes) << name;

  int not_begun = 0, restarted = 0;
  for (std::uint64_t cut = 0; cut < wanted; ++cut) {
    Random random(5, Purpose("power cuts"), cut);
    const auto last = 1 + random.below(steps.size());
    // Everything that was not flushed is lost, or some of it.
    const float share = random.chance(0.25f) ? 0 : random.uniform();
    SCOPED_TRACE("power cut " + std::to_string(cut) + " after step " + std::to_string(last));
    const fs::path state = folder_ / "state";
    fs::remove_all(state);
    ReplayedDisk(std::span(steps).first(last)).write(disk(), state, {&random, share});
    const bool begun = fs::exists(state / "run/config.yaml");
    if (!begun) ++not_begun;
    auto process = begun ? resume("state/run") : train("state/run", kShort);
    const auto status = process.ended(kDeadline);
    ASSERT_EQ(status, 0) << process.errors();
    if (process.errors().find("set aside") != std::string::npos) ++restarted;
    expect_learned_the_same(state / "run", folder_ / "whole");
    if (HasFailure()) {
      std::cout << process.errors();
      fs::copy(state, fs::temp_directory_path() / "riffle-power-cut",
               fs::copy_options::recursive | fs::copy_options::overwrite_existing);
      return;
    }
  }
  std::cout << wanted << " power cuts within " << steps.size() << " steps survived, " << not_begun
            << " of them before the run had begun; " << restarted
            << " times a checkpoint was set aside\n";
}

}  // namespace
}  // namespace riffle

// A run that is killed, stopped or shared: real processes, real signals.

#include "apps/riffle/testing/durability.h"

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "apps/riffle/testing/process.h"
#include "apps/riffle/testing/program.h"
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>

#include "riffle/base/testing/temp_folder.h"

namespace riffle {
namespace {

using testing::HasSubstr;

// With every method.
class KilledRun : public DurabilityTest, public testing::WithParamInterface<std::string> {};
INSTANTIATE_TEST_SUITE_P(Methods, KilledRun,
                         testing::Values("simsiam", "simclr", "byol", "vicreg", "visreg"),
                         [](const auto& method) { return method.param; });

// RIFFLE_KILLS says how many; a few without.
TEST_P(KilledRun, ResumesToTheSameEndWhateverTheInstant) {
  const char* asked = std::getenv("RIFFLE_KILLS");
  const int wanted = asked != nullptr ? std::atoi(asked) : GetParam() == "simsiam" ? 8 : 2;
  const std::vector<std::string> short_run = {"--max-updates", "120", "--objective", GetParam()};
  const auto start = Clock::now();
  auto whole = train("whole", short_run);
  ASSERT_EQ(whole.ended(kDeadline), 0) << whole.errors();
  const double duration = seconds_since(start);

  std::mt19937 generator(static_cast<unsigned>(wanted));
  std::uniform_real_distribution<double> share(0, 1);
  // Instants lie between 0 and this. It follows the speed of the machine, so that about one process
  // in six ends before its kill comes and kills reach up to the last step.
  double span = duration;
  int kills = 0, while_writing = 0, finished = 0;
  for (int run = 0; kills < wanted; ++run) {
    const std::string name = "run-" + std::to_string(run);
    bool done = false;
    while (!done) {
      const bool begun = fs::exists(folder_ / name / "config.yaml");
      auto process = begun ? resume(name) : train(name, short_run);
      // Enough kills: this one may finish.
      const auto status = process.ended(kills < wanted ? share(generator) * span : kDeadline);
      if (status) {
        ASSERT_EQ(*status, 0) << process.errors();
        done = true;
        span *= 0.9;
      } else {
        span *= 1.02;
        ASSERT_LT(kills, wanted) << "did not finish in time: " << process.errors();
        process.signal(SIGKILL);
        process.ended(kDeadline);
        // A kill before there was anything to lose does not count.
        if (!fs::exists(folder_ / name / "config.yaml")) continue;
        ++kills;
        if (half_written(folder_ / name / "checkpoints")) ++while_writing;
      }
    }
    ++finished;
    expect_learned_the_same(folder_ / name, folder_ / "whole");
    fs::remove_all(folder_ / name);
  }
  std::cout << kills << " kills survived in " << finished << " runs of " << duration << " s each, "
            << while_writing << " of them while a checkpoint was half written; at the end instants "
            << "lay within " << span << " s\n";
}

TEST_F(DurabilityTest, ASignalEndsARunInGoodOrderAndNamesTheResumeCommand) {
  for (const int number : {SIGINT, SIGTERM, SIGHUP}) {
    const std::string name = "run-" + std::to_string(number);
    auto process = train(name, kEndless);
    wait_for(fs::path(name) / "metrics.jsonl", process);
    process.signal(number);
    const auto status = process.ended(kDeadline);
    ASSERT_TRUE(status);
    EXPECT_EQ(*status, 0) << process.errors();
    EXPECT_THAT(process.errors(), HasSubstr("riffle resume " + name));
    EXPECT_GT(learned(folder_ / name).size(), 0u);
  }
}

TEST_F(DurabilityTest, AStreamThatFailsEndsARunThatGoesOnToTheSameEnd) {
  ASSERT_EQ(train("first", {"--max-updates", "1"}).ended(kDeadline), 0);
  Process made(folder_, {"buffer", "first", "--export", "photos", "--order", "newest"});
  ASSERT_EQ(made.ended(kDeadline), 0) << made.errors();
  const std::vector<std::string> more = {"--shape", "loop:", "--max-updates",
                                         "400",     "--set", "checkpoint.every=1000"};
  auto whole = train("whole", more, "folder:photos");
  ASSERT_EQ(whole.ended(kDeadline), 0) << whole.errors();
  auto process = train("run", more, "folder:photos");
  while (content(folder_ / "run/metrics.jsonl").empty()) {
    ASSERT_FALSE(process.ended(0.001)) << process.errors();
  }
  fs::rename(folder_ / "photos", folder_ / "away");
  const auto status = process.ended(kDeadline);
  ASSERT_TRUE(status);
  EXPECT_EQ(WEXITSTATUS(*status), 1) << process.errors();
  EXPECT_THAT(process.errors(), HasSubstr("riffle: the folder photos is gone or empty"));
  EXPECT_THAT(process.errors(), HasSubstr("riffle resume run"));
  fs::rename(folder_ / "away", folder_ / "photos");
  auto rest = resume("run");
  ASSERT_EQ(rest.ended(kDeadline), 0) << rest.errors();
  expect_learned_the_same(folder_ / "run", folder_ / "whole");
}

TEST_F(DurabilityTest, SignalsTwentyMillisecondsApartAreOneAndLeaveACheckpoint) {
  auto process = train("run", kEndless);
  wait_for("run/metrics.jsonl", process);
  for (int i = 0; i < 3; ++i) {
    process.signal(SIGINT);
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  const auto status = process.ended(kDeadline);
  ASSERT_TRUE(status);
  EXPECT_EQ(*status, 0) << process.errors();
  EXPECT_THAT(process.errors(), HasSubstr("again to quit without saving"));
  EXPECT_GT(learned(folder_ / "run").size(), 0u);
}

// timeout(1) sends its signal to the program and to the program's group: twice.
TEST_F(DurabilityTest, ARunUnderTimeoutLeavesACheckpoint) {
  std::string command = "cd '" + folder_.string() + "' && timeout 2 '" RIFFLE_PROGRAM "' train ";
  command += kTiny.substr(0, kTiny.find("--max-updates")) +
             " --run run --max-updates 0 --schedule constant 2>errors.txt";
  EXPECT_EQ(WEXITSTATUS(std::system(command.c_str())), 124);
  EXPECT_GT(learned(folder_ / "run").size(), 0u) << content(folder_ / "errors.txt");
}

// RIFFLE_SOAK_SECONDS makes it longer.
TEST_F(DurabilityTest, MemoryAndDiskOfALiveRunStayFlat) {
#ifdef __SANITIZE_ADDRESS__
  GTEST_SKIP() << "the sanitizer keeps freed memory for a while, and with it the process grows";
#endif
  const char* asked = std::getenv("RIFFLE_SOAK_SECONDS");
  const double seconds = asked != nullptr ? std::atof(asked) : 4;
  auto more = kEndless;
  for (const char* argument : {"--clock", "live", "--shape", "throttle:rate=300", "--set",
                               "checkpoint.every=20", "--set", "metrics.dense=32"}) {
    more.emplace_back(argument);
  }
  auto process = train("run", more);
  wait_for("run/metrics.jsonl", process);
  const auto start = Clock::now();
  std::int64_t warm = 0, most = 0, most_disk = 0;
  while (seconds_since(start) < seconds) {
    ASSERT_FALSE(process.ended(0.05)) << process.errors();
    if (seconds_since(start) < seconds / 4) continue;
    if (warm == 0) warm = process.resident_bytes();
    most = std::max(most, process.resident_bytes());
    most_disk = std::max(most_disk, bytes_in(folder_ / "run"));
  }
  const std::int64_t last = process.resident_bytes();
  process.signal(SIGTERM);
  ASSERT_EQ(process.ended(kDeadline), 0) << process.errors();
  std::cout << warm / 1024 << " KiB when warm, " << most / 1024 << " KiB at most after, "
            << last / 1024 << " KiB at the end; " << most_disk / 1024 << " KiB on disk at most\n";
  EXPECT_LT(most - warm, 16 << 20);
  EXPECT_LT(most_disk, 4 << 20);
}

TEST_F(DurabilityTest, ASecondProcessOnARunIsRefused) {
  auto process = train("run", kEndless);
  wait_for("run/metrics.jsonl", process);
  auto second = resume("run");
  const auto status = second.ended(kDeadline);
  ASSERT_TRUE(status);
  EXPECT_EQ(WEXITSTATUS(*status), 2);
  EXPECT_THAT(second.errors(), HasSubstr("in use by process"));
}

}  // namespace
}  // namespace riffle

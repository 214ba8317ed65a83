// The program as a user meets it: exit codes, one-line complaints, JSON, files left behind.

#include <array>
#include <cstdio>
#include <filesystem>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <sys/wait.h>

namespace riffle {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

struct Outcome {
  int exit_code = -1;
  std::string out;
  std::string err;
};

class ProgramTest : public testing::Test {
 protected:
  ProgramTest() {
    fs::remove_all(folder_);
    fs::create_directories(folder_);
  }
  ~ProgramTest() override { fs::remove_all(folder_); }

  // Runs the program in the test's own folder.
  Outcome riffle(const std::string& arguments) const {
    const fs::path errors = folder_ / "stderr.txt";
    const std::string command = "cd '" + folder_.string() + "' && '" RIFFLE_PROGRAM "' " +
                                arguments + " 2>'" + errors.string() + "'";
    Outcome outcome;
    FILE* pipe = popen(command.c_str(), "r");
    std::array<char, 4096> chunk;
    while (const auto got = std::fread(chunk.data(), 1, chunk.size(), pipe))
      outcome.out.append(chunk.data(), got);
    outcome.exit_code = WEXITSTATUS(pclose(pipe));
    FILE* file = std::fopen(errors.c_str(), "r");
    while (const auto got = std::fread(chunk.data(), 1, chunk.size(), file))
      outcome.err.append(chunk.data(), got);
    std::fclose(file);
    return outcome;
  }

  // The complaint is one line on standard error, nothing on standard output.
  void expect_refused(const std::string& arguments, const std::string& words) const {
    const auto outcome = riffle(arguments);
    EXPECT_EQ(outcome.exit_code, 2) << arguments << '\n' << outcome.err;
    EXPECT_THAT(outcome.err, HasSubstr(words)) << arguments;
    EXPECT_EQ(std::count(outcome.err.begin(), outcome.err.end(), '\n'), 1) << outcome.err;
    EXPECT_EQ(outcome.out, "");
  }

  fs::path folder_ = fs::path(testing::TempDir()) /
                     ("riffle_program_" +
                      std::string(testing::UnitTest::GetInstance()->current_test_info()->name()));
};

const std::string kTiny =
    "--stream 'synthetic:?frames=8&size=16' --size 16 --arch resnet10 --stem stride2 --width 4 "
    "--batch 8 --capacity 32 --updates 2 --max-updates 20 --set model.projector_out=16 "
    "--set model.predictor_hidden=8 ";

TEST_F(ProgramTest, EveryCommandHasHelpThatEndsWithAnExample) {
  EXPECT_EQ(riffle("--help").exit_code, 0);
  for (const char* command :
       {"demo", "train", "probe", "stream", "config", "bench step", "bench minred"}) {
    const auto outcome = riffle(std::string(command) + " --help");
    EXPECT_EQ(outcome.exit_code, 0) << command;
    EXPECT_THAT(outcome.out, HasSubstr("Example")) << command;
  }
}

TEST_F(ProgramTest, VersionNamesTheLibrariesBuiltIn) {
  const auto outcome = riffle("--version");
  EXPECT_EQ(outcome.exit_code, 0);
  EXPECT_THAT(outcome.out, HasSubstr("LibTorch"));
}

TEST_F(ProgramTest, BadUsageIsRefusedInOneLineWithExitCode2) {
  expect_refused("", "subcommand");
  expect_refused("trian", "trian");
  expect_refused("train", "--run");
  expect_refused("train --run r --bacth 3", "bacth");
  expect_refused("train --run r --batch many", "train.batch");
  expect_refused("train --run r --set train.bacth=3", "did you mean 'train.batch'?");
  expect_refused("train --run r --stream nowhere:x", "nowhere");
  expect_refused("train --run r --stream 'synthetic:?farmes=3'", "did you mean 'frames'?");
  expect_refused("train --run r2 --stream folder:absent", "absent");
  expect_refused("train --run r3 --buffer none --updates 5", "contradicts");
  expect_refused("train --run r4 --config absent.yaml", "absent.yaml");
  expect_refused("probe absent --train synthetic: --val synthetic:", "absent");
  expect_refused("stream 'synthetic:?size=-1'", "size");
}

TEST_F(ProgramTest, TrainThenProbeGivesAccuraciesBesideTheUntrainedNetwork) {
  const auto trained = riffle("train --run run --json " + kTiny);
  ASSERT_EQ(trained.exit_code, 0) << trained.err;
  const auto result = nlohmann::json::parse(trained.out);
  EXPECT_EQ(result["updates"], 20);
  EXPECT_EQ(result["samples_seen"], 32 + 9 * 8);
  for (const char* key : {"run", "loss", "images_per_s", "skipped"})
    EXPECT_TRUE(result.contains(key)) << key;
  EXPECT_TRUE(fs::exists(folder_ / "run/config.yaml"));
  EXPECT_TRUE(fs::exists(folder_ / "run/metrics.jsonl"));
  EXPECT_TRUE(fs::exists(folder_ / "run/checkpoints/update-000000020.safetensors"));

  const auto probed = riffle(
      "probe run --json --train 'synthetic:?size=16&seed=7&frames=1&samples=200' "
      "--val 'synthetic:?size=16&seed=8&frames=1&samples=100'");
  ASSERT_EQ(probed.exit_code, 0) << probed.err;
  const auto accuracy = nlohmann::json::parse(probed.out);
  for (const char* key : {"linear_top1", "linear_top5", "knn_top1"}) {
    EXPECT_GE(accuracy[key], 0) << key;
    EXPECT_LE(accuracy[key], 100) << key;
    EXPECT_TRUE(accuracy["untrained"].contains(key)) << key;
  }
  EXPECT_FALSE(accuracy["recipe"].get<std::string>().empty());

  expect_refused("train --run run " + kTiny, "holds a run already");
}

TEST_F(ProgramTest, ConfigPrintsWhatTrainReads) {
  const auto printed =
      riffle("config > my.yaml && '" RIFFLE_PROGRAM "' train --config my.yaml --run run " + kTiny);
  EXPECT_EQ(printed.exit_code, 0) << printed.err;
  EXPECT_THAT(riffle("config run").out, HasSubstr("batch: 8"));
}

TEST_F(ProgramTest, StreamLeavesAContactSheetAndItsFigures) {
  const auto outcome =
      riffle("stream 'synthetic:?frames=8' --samples 200 --sheet sheet.png --json");
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  const auto figures = nlohmann::json::parse(outcome.out);
  EXPECT_EQ(figures["samples"], 200);
  EXPECT_EQ(figures["clips"], 25);
  for (const char* key : {"frames_per_s", "labels", "skipped", "same_clip_pairs"}) {
    EXPECT_TRUE(figures.contains(key)) << key;
  }
  EXPECT_TRUE(fs::exists(folder_ / "sheet.png"));
}

TEST_F(ProgramTest, AShortDemoComparesAllModesAndWritesItsPage) {
  const auto outcome =
      riffle("demo --json --out page --set train.max_updates=12 --set model.width=4");
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  const auto result = nlohmann::json::parse(outcome.out);
  std::vector<std::string> modes;
  for (const auto& mode : result["modes"]) {
    modes.push_back(mode["mode"]);
    EXPECT_EQ(mode["updates"], 12);
    for (const char* key :
         {"linear_top1", "knn_top1", "same_clip_pairs", "clips_in_buffer", "seconds"}) {
      EXPECT_TRUE(mode.contains(key)) << key;
    }
  }
  EXPECT_THAT(modes,
              testing::ElementsAre("conventional", "fifo", "reservoir", "minred", "decorrelated"));
  EXPECT_TRUE(result["untrained"].contains("linear_top1"));
  EXPECT_TRUE(fs::exists(folder_ / result["report"].get<std::string>()));
}

}  // namespace
}  // namespace riffle

// riffle curate as a user calls it: stopped and killed, it ends with the selection of one pass.

#include <csignal>

#include "apps/riffle/testing/process.h"
#include "apps/riffle/testing/program.h"
#include <nlohmann/json.hpp>

namespace riffle {
namespace {

class CurateCommandTest : public ProgramTest {
 protected:
  void SetUp() override {
    const auto outcome = riffle(std::string("-q train --run run ") + kTiny);
    ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  }
  static std::vector<std::string> command(const std::string& out) {
    return {"curate",    "synthetic:?frames=8&size=16&seed=9&samples=1500",
            "--keep",    "100",
            "--batch",   "32",
            "--encoder", "run",
            "--out",     out};
  }
};

TEST_F(CurateCommandTest, StoppedOrKilledItEndsWithTheSelectionOfOnePass) {
  Process whole(folder_, command("whole"));
  ASSERT_EQ(whole.ended(60), 0) << whole.errors();
  const std::string selection = content(folder_ / "whole/selection.csv");
  EXPECT_EQ(std::count(selection.begin(), selection.end(), '\n'), 101);

  for (const int signal : {SIGTERM, SIGKILL}) {
    const std::string out = signal == SIGTERM ? "stopped" : "killed";
    Process begun(folder_, command(out));
    ASSERT_TRUE(begun.says("read ", 60));
    begun.signal(signal);
    const auto status = begun.ended(20);
    ASSERT_TRUE(status);
    if (signal == SIGTERM) {
      EXPECT_EQ(*status, 0) << begun.errors();
      EXPECT_TRUE(fs::exists(folder_ / out / "state.safetensors"));
    }
    Process again(folder_, command(out));
    ASSERT_EQ(again.ended(60), 0) << again.errors();
    EXPECT_EQ(content(folder_ / out / "selection.csv"), selection) << out;
  }
}

TEST_F(CurateCommandTest, SaysWhereTheTimeWent) {
  const auto outcome = riffle(
      "-q curate 'synthetic:?frames=8&size=16&samples=300' --keep 40 --batch 32 --encoder run "
      "--out out --json");
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  const auto said = nlohmann::json::parse(outcome.out);
  const double seconds = said["seconds"], share = said["selection_share"], end = said["finish_s"];
  EXPECT_NEAR(said["images_per_s"].get<double>() * seconds, 300, 1e-6);
  EXPECT_GT(share, 0);
  EXPECT_GT(end, 0);
  EXPECT_LT(share * seconds + end, seconds);
}

TEST_F(CurateCommandTest, WithoutAnEncoderOneLearnsOnTheWay) {
  const std::string command =
      "curate 'synthetic:?frames=8&size=16&seed=9&samples=600' --keep 40 --batch 16 --size 16 "
      "--set model.arch=resnet10 --set model.width=4 --set model.projector_out=16 "
      "--set train.threads=1 --set train.updates=1 ";
  const auto outcome = riffle("-q " + command + "--out learned");
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_EQ(std::ranges::count(content(folder_ / "learned/selection.csv"), '\n'), 41);
  // What it learned can be used again.
  const auto again = riffle(
      "-q curate 'synthetic:?frames=8&size=16&seed=9&samples=60' --keep 9 --out again "
      "--encoder learned/encoder.safetensors");
  EXPECT_EQ(again.exit_code, 0) << again.err;

  Process begun(folder_, {"curate",  "synthetic:?frames=8&size=16&seed=9&samples=600",
                          "--keep",  "40",
                          "--batch", "16",
                          "--size",  "16",
                          "--set",   "model.arch=resnet10",
                          "--set",   "model.width=4",
                          "--set",   "model.projector_out=16",
                          "--set",   "train.threads=1",
                          "--set",   "train.updates=1",
                          "--out",   "stopped"});
  ASSERT_TRUE(begun.says("read ", 60));
  begun.signal(SIGTERM);
  ASSERT_TRUE(begun.ended(20));
  const auto rest = riffle("-q " + command + "--out stopped");
  ASSERT_EQ(rest.exit_code, 0) << rest.err;
  EXPECT_EQ(content(folder_ / "stopped/selection.csv"), content(folder_ / "learned/selection.csv"));
  expect_refused(command + "--near 0.1 --out x", "--near needs an --encoder");
  expect_refused(command + "--encoder run --out x", "leave out --encoder");
  EXPECT_FALSE(fs::exists(folder_ / "x"));
}

TEST_F(CurateCommandTest, BadUsageIsRefused) {
  const std::string stream = "curate 'synthetic:?size=16&samples=20' --encoder run ";
  expect_refused(stream + "--out x", "--keep");
  expect_refused(stream + "--keep 0 --out x", "--keep");
  expect_refused(stream + "--keep 5 --out run", "not empty");
  expect_refused(stream + "--keep 5 --out x --junk some", "(valid: drop, keep, report)");
  expect_refused(stream + "--keep 5 --out x --per 1", "unknown word '1'");
  expect_refused(stream + "--keep 5 --out x --frames gif", "(valid: jpeg, png)");
  expect_refused(stream + "--keep 5 --list --out shards:x/part-%06d.tar",
                 "--list writes no pictures");
  expect_refused(stream + "--keep 5 --out shards:x/part.tar", "not a pattern for shards");
  expect_refused("curate 'synthetic:?size=16&samples=20' --keep 5 --out x --set checkpoint.every=3",
                 "checkpoint.every=3 does nothing here");
  expect_refused("curate 'synthetic:?size=16' --encoder absent --keep 5 --out x", "absent");
  EXPECT_FALSE(fs::exists(folder_ / "x"));
}

}  // namespace
}  // namespace riffle

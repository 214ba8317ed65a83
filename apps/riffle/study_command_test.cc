// `riffle study` as a user calls it. What studies do is tested in riffle/study.

#include <fstream>

#include "apps/riffle/testing/process.h"
#include "apps/riffle/testing/program.h"
#include <nlohmann/json.hpp>

namespace riffle {
namespace {

using StudyCommandTest = ProgramTest;

TEST_F(StudyCommandTest, ADryRunListsTheRunsAndMakesNone) {
  const auto outcome = riffle("study unique-images --scale smoke --seeds 2 --dry-run --json");
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  const auto json = nlohmann::json::parse(outcome.out);
  ASSERT_EQ(json["runs"].size(), 6u);
  EXPECT_EQ(json["runs"][3]["run"], "1-seed1") << "all of a seed before the next";
  EXPECT_GT(json["seconds"], 0);
  EXPECT_FALSE(fs::exists(folder_ / "studies-out"));
}

TEST_F(StudyCommandTest, ACopiedStudyRunsAndItsFailuresAreNamed) {
  ASSERT_EQ(riffle("-q study unique-images --scale smoke --out a").exit_code, 0);
  EXPECT_TRUE(fs::exists(folder_ / "a/unique-images.html"));
  EXPECT_TRUE(fs::exists(folder_ / "a/unique-images-1.csv"));

  std::ifstream in(folder_ / "a/unique-images.json");
  EXPECT_THAT(nlohmann::json::parse(in)["command"],
              HasSubstr("riffle study unique-images --scale smoke --out a"));

  std::ofstream(folder_ / "mine.yaml") << R"(
set:
  model: {arch: resnet10, stem: stride2, width: 2, projector_out: 8, predictor_hidden: 4}
  augment.size: 16
  buffer.capacity: 16
  train: {batch: 8, max_updates: 4, threads: 1}
  metrics.every: 1
vary:
  stream:
    there: {stream.uri: 'synthetic:?size=16'}
    short: {stream.uri: 'synthetic:?size=16&samples=9'}
probe:
  sets:
    made: {train: 'synthetic:?frames=1&size=16&seed=7&samples=60', val: 'synthetic:?frames=1&size=16&seed=7&samples=30'}
scales:
  smoke: {}
show:
  - table: Accuracy
    rows: stream
    values: linear_top1
)";
  const auto outcome = riffle("-q study mine.yaml --scale smoke --out b --json");
  EXPECT_EQ(outcome.exit_code, 1) << outcome.err;
  EXPECT_THAT(outcome.err, HasSubstr("1 of 2 runs failed: short-seed0"));
  EXPECT_EQ(nlohmann::json::parse(outcome.out)["made"], 1);
}

TEST_F(StudyCommandTest, WhatEveryRunWouldMissIsSaidOnceBeforeTheFirst) {
  const std::string study = "study correlated --scale small --data nodata --device cpu --out out";
  const auto outcome = riffle(study);
  EXPECT_EQ(outcome.exit_code, 2);
  EXPECT_THAT(outcome.err, HasSubstr("no file matches shards:nodata/tiny-imagenet"));
  EXPECT_EQ(std::ranges::count(outcome.err, '\n'), 1) << outcome.err;
  EXPECT_FALSE(fs::exists(folder_ / "out"));

  std::ofstream(folder_ / "file");
  EXPECT_THAT(riffle("study unique-images --scale smoke --out file/out").err,
              HasSubstr("cannot make folder file"));
}

TEST_F(StudyCommandTest, ADryRunSaysWhatIsMissing) {
  const auto outcome = riffle("study unseen --scale small --data nodata --device cpu --dry-run");
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("conventional-order1-seed0"));
  EXPECT_THAT(outcome.err, HasSubstr("no file matches shards:nodata/tiny-imagenet"));
}

TEST_F(StudyCommandTest, ADeviceTakesThePlaceOfTheStudysOwn) {
  ASSERT_EQ(
      riffle("-q study unique-images --scale smoke --only images=1 --device cpu --out a").exit_code,
      0);
  std::ifstream in(folder_ / "a/unique-images.json");
  EXPECT_THAT(nlohmann::json::parse(in)["command"], HasSubstr("--device cpu"));
  expect_refused("study unique-images --scale smoke --device gpu", "cuda");
}

TEST_F(StudyCommandTest, StoppedWhileItProbesItGoesOnLater) {
  std::ofstream(folder_ / "slow.yaml") << R"(
set:
  model: {arch: resnet10, stem: stride2, width: 2, projector_out: 8, predictor_hidden: 4}
  augment.size: 16
  stream.uri: 'synthetic:?size=16'
  buffer.capacity: 16
  train: {batch: 8, max_updates: 8, threads: 1}
vary:
  policy:
    fifo: {buffer.policy: fifo}
probe:
  points: 8
  sets:
    made: {train: 'synthetic:?frames=1&size=16&seed=7&samples=4000', val: 'synthetic:?frames=1&size=16&seed=8&samples=500'}
scales:
  smoke: {}
show:
  - table: Accuracy
    rows: policy
    values: linear_top1
)";
  Process study(folder_, {"study", "slow.yaml", "--scale", "smoke", "--out", "out"});
  ASSERT_TRUE(study.says("reading the probe set", 60)) << study.errors();
  study.signal(SIGINT);
  const auto status = study.ended(60);
  ASSERT_TRUE(status) << study.errors();
  EXPECT_TRUE(WIFEXITED(*status)) << study.errors();
  EXPECT_EQ(WEXITSTATUS(*status), 1);
  EXPECT_THAT(study.errors(), HasSubstr("the same command goes on where it was"));
  EXPECT_FALSE(fs::exists(folder_ / "out/runs/fifo-seed0/result.json"));
  EXPECT_EQ(riffle("-q study slow.yaml --scale smoke --out out").exit_code, 0);
}

TEST_F(StudyCommandTest, TwoProcessesMakePartsOfOneStudy) {
  const std::string study = "-q study unique-images --scale smoke --out '" +
                            (folder_ / "both").string() + "' --only images=";
  const auto outcome =
      riffle(study + "1 & '" RIFFLE_PROGRAM "' " + study + "2,3; here=$?; wait $! && exit $here");
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  std::ifstream in(folder_ / "both/unique-images.json");
  const auto runs = nlohmann::json::parse(in)["runs"];
  ASSERT_EQ(runs.size(), 3u);
  for (const auto& run : runs) EXPECT_FALSE(run["values"].is_null()) << run["run"];
  const auto again = riffle(study + "2 --json");
  EXPECT_EQ(nlohmann::json::parse(again.out)["made"], 0);
  EXPECT_EQ(nlohmann::json::parse(again.out)["done"], 3);
}

TEST_F(StudyCommandTest, BadUsageIsRefused) {
  expect_refused("study eficiency --scale smoke", "did you mean 'efficiency'");
  expect_refused("study efficiency --scale tiny", "smoke");
  expect_refused("study efficiency --scale small", "--data");
  expect_refused("study absent.yaml --scale smoke", "absent.yaml");
  expect_refused("study unique-images --scale smoke --only image=1", "did you mean 'images'");
  expect_refused("study unique-images --scale smoke --only seed=1", "seed");
}

}  // namespace
}  // namespace riffle

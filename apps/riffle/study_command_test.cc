// `riffle study` as a user calls it. What studies do is tested in riffle/study.

#include <algorithm>
#include <cmath>
#include <fstream>

#include "apps/riffle/testing/process.h"
#include "apps/riffle/testing/program.h"
#include <nlohmann/json.hpp>

#include "riffle/base/text.h"

namespace riffle {
namespace {

class StudyCommandTest : public ProgramTest {
 protected:
  // Writes a study of runs as small as they can be: `set` and `vary` as in its file, probed with
  // `pictures` labelled ones.
  void write_study(const std::string& name, const std::string& set, const std::string& vary,
                   int points = 2, int pictures = 200) {
    const std::string set_of_all = R"(
set:
  model: {arch: resnet10, stem: stride2, width: 2, projector_out: 8, predictor_hidden: 4}
  augment.size: 16
  stream.uri: 'synthetic:?size=16&seed={seed}'
  buffer.capacity: 16
)";
    const std::string show = R"(
scales:
  smoke: {}
show:
  - table: Accuracy
    rows: kind
    values: linear_top1
)";
    const auto probe_set = [](int seed, int samples) {
      return cat("'synthetic:?frames=1&size=16&seed=", seed, "&samples=", samples, "'");
    };
    std::ofstream(folder_ / name) << set_of_all << set << "\nvary:\n  kind:\n"
                                  << vary << "\nprobe:\n  points: " << points
                                  << "\n  sets:\n    synthetic: {train: " << probe_set(7, pictures)
                                  << ", val: " << probe_set(8, 100) << "}\n"
                                  << show;
  }

  // Two kinds of runs of some seconds, and one whose stream is too short.
  void write_three_runs() {
    write_study("three.yaml", R"(
  train: {batch: 8, max_updates: 1000, threads: 1}
  metrics: {every: 1, nearest_every: 0}
)",
                R"(
    short: {stream.uri: 'synthetic:?size=16&samples=9'}
    one: {buffer.policy: fifo}
    two: {buffer.policy: reservoir}
)");
  }
};

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

  write_study("mine.yaml", R"(
  train: {batch: 8, max_updates: 4, threads: 1}
  metrics.every: 1
)",
              R"(
    there: {}
    short: {stream.uri: 'synthetic:?size=16&samples=9'}
)");
  const auto outcome = riffle("-q study mine.yaml --scale smoke --out b --json");
  EXPECT_EQ(outcome.exit_code, 1) << outcome.err;
  EXPECT_THAT(outcome.err, HasSubstr("1 of 2 runs failed: short-seed0"));
  EXPECT_EQ(nlohmann::json::parse(outcome.out)["made"], 1);
}

TEST_F(StudyCommandTest, PagesAreWrittenOfWhatAnotherMachineMade) {
  const std::string study = "-q study unique-images --scale smoke --seeds 2 --out out";
  EXPECT_THAT(riffle(study + " --pages").err, HasSubstr("no run of the study is finished in out"));
  ASSERT_EQ(riffle(study + " --only images=1").exit_code, 0);
  const fs::path result = folder_ / "out/runs/1-seed0/result.json";
  auto json = nlohmann::json::parse(std::ifstream(result));
  EXPECT_THAT(json["machine"], HasSubstr(" cores"));
  json["machine"] = "a machine far away";
  std::ofstream(result) << json;
  fs::remove(folder_ / "out/unique-images.html");

  const auto outcome = riffle(study + " --pages --json");
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  const auto said = nlohmann::json::parse(outcome.out);
  EXPECT_EQ(said["done"], 2);
  EXPECT_EQ(said["made"], 0);
  std::ifstream in(folder_ / "out/unique-images.html");
  const std::string page{std::istreambuf_iterator<char>(in), {}};
  EXPECT_THAT(page, HasSubstr("a machine far away"));
  EXPECT_THAT(page, HasSubstr("2 of 6 runs"));
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
              HasSubstr("file is a file, not a folder; give another name"));
}

TEST_F(StudyCommandTest, ADryRunSaysWhatIsMissing) {
  const auto outcome =
      riffle("study unseen --scale small --data nodata --device cpu --set model.width=4 --dry-run");
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("order1-conventional-seed0"));
  EXPECT_THAT(outcome.err, HasSubstr("the stream of first: video: no film found"));
}

TEST_F(StudyCommandTest, ADryRunJudgesRunsWhoseBatchesAreInPartFresh) {
  const auto outcome = riffle(
      "study ocssl --scale small --data nodata --device cpu --set model.width=4 --dry-run "
      "--only mode=merge_aligned --only seed=0");
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("judged by 3 updates of the first run"));
}

TEST_F(StudyCommandTest, ACheckSaysWhatIsMissingAndWhatRunsTakeAndMakesNothing) {
  const std::string tiny =
      " --set model.width=2 --set model.stem=stride2 --set augment.size=16 "
      "--set stream.size=16 --set train.batch=8 --device cpu --check";
  const auto outcome =
      riffle("study lifelong --scale paper --data nodata --only order=order1 --out out" + tiny);
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("missing: the stream of the first phase"));
  EXPECT_THAT(outcome.out, HasSubstr("nodata/imagenet21k"));
  EXPECT_THAT(outcome.out, HasSubstr("one folder per class"));
  EXPECT_THAT(outcome.out, HasSubstr("order1-minred-seed0"));
  EXPECT_THAT(outcome.out, HasSubstr("7 runs to make"));
  // All runs of the order read the same folder.
  const auto said = outcome.out.find("nodata/imagenet21k");
  EXPECT_EQ(outcome.out.find("nodata/imagenet21k: ", said + 1), std::string::npos) << outcome.out;
  EXPECT_FALSE(fs::exists(folder_ / "out"));
  EXPECT_THAT(riffle("study unique-images --scale smoke --check").out,
              HasSubstr("all sources are there"));
}

TEST_F(StudyCommandTest, ACheckSaysWhatItCannotMeasureOnceAndGivesTheRest) {
  const auto outcome = riffle(
      "study lifelong --scale small --data nodata --only order=order1 --check "
      "--set model.width=2 --set run.device=cuda:99");
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_EQ(std::ranges::count(outcome.err, '\n'), 1) << outcome.err;
  EXPECT_THAT(outcome.err, HasSubstr("time and memory are not known"));
  EXPECT_THAT(outcome.out, HasSubstr("an unknown number of hours"));
}

TEST_F(StudyCommandTest, ACheckSaysWhatShufflesPutIntoTemporaryFiles) {
  const std::string study = "study unique-images --scale smoke --check";
  EXPECT_THAT(riffle(study).out, testing::Not(HasSubstr("TMPDIR")));
  const auto shuffled =
      riffle(study + " --set stream.shapes=decorrelate:window=1000000000,memory=0");
  EXPECT_THAT(shuffled.out, HasSubstr("shuffled streams: up to ")) << shuffled.err;
}

TEST_F(StudyCommandTest, ACheckAddsUpTheTemporaryFilesOfRunsThatAreMadeAtOnce) {
  const std::string study =
      "study unique-images --scale smoke --check --set train.max_updates=1000000 --set "
      "stream.shapes=decorrelate:window=1000000000,memory=0";
  const auto gigabytes = [&](const std::string& flags) {
    constexpr std::string_view kWords = "shuffled streams: up to ";
    const std::string said = riffle(study + flags).out;
    const auto at = said.find(kWords);
    return at == said.npos ? std::nan("") : std::stod(said.substr(at + kWords.size()));
  };
  const double one = gigabytes("");
  EXPECT_GT(one, 1);
  EXPECT_NEAR(gigabytes(" --jobs 2"), 2 * one, 0.2);
  EXPECT_NEAR(gigabytes(" --jobs 9"), 3 * one, 0.3) << "there are three runs";
}

TEST_F(StudyCommandTest, ADeviceTakesThePlaceOfTheStudysOwn) {
  ASSERT_EQ(
      riffle("-q study unique-images --scale smoke --only images=1 --device cpu --out a").exit_code,
      0);
  std::ifstream in(folder_ / "a/unique-images.json");
  EXPECT_THAT(nlohmann::json::parse(in)["command"], HasSubstr("--device cpu"));
  expect_refused("study unique-images --scale smoke --device gpu", "cuda");
}

TEST_F(StudyCommandTest, StoppedWhileItProbesItContinuesLater) {
  write_study("slow.yaml", "  train: {batch: 8, max_updates: 8, threads: 1}",
              "    fifo: {buffer.policy: fifo}", /*points=*/8, /*pictures=*/4000);
  Process study(folder_, {"study", "slow.yaml", "--scale", "smoke", "--out", "out"});
  ASSERT_TRUE(study.says("reading the probe set", 60)) << study.errors();
  study.signal(SIGINT);
  const auto status = study.ended(60);
  ASSERT_TRUE(status) << study.errors();
  EXPECT_TRUE(WIFEXITED(*status)) << study.errors();
  EXPECT_EQ(WEXITSTATUS(*status), 1);
  EXPECT_THAT(study.errors(), HasSubstr("the same command continues where it was"));
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

// What does not depend on the time it took, of every run.
nlohmann::json lasting_results(const fs::path& out, const std::vector<std::string>& slugs) {
  nlohmann::json all;
  for (const auto& slug : slugs) {
    auto result = nlohmann::json::parse(content(out / "runs" / slug / "result.json"));
    result["values"].erase("seconds");
    result["values"].erase("images_per_s");
    all.push_back(result);
  }
  return all;
}

TEST_F(StudyCommandTest, RunsMadeAtOnceGiveWhatRunsInTurnGive) {
  write_three_runs();
  const std::string study = "-q study three.yaml --scale smoke --set train.max_updates=60 --json ";
  const auto in_turn = riffle(study + "--out a");
  const auto at_once = riffle(study + "--jobs 3 --out b");
  for (const auto& outcome : {in_turn, at_once}) {
    EXPECT_EQ(outcome.exit_code, 1) << outcome.err;
    EXPECT_THAT(outcome.err, HasSubstr("1 of 3 runs failed: short-seed0 (the stream ended"));
    EXPECT_EQ(nlohmann::json::parse(outcome.out)["made"], 2);
  }
  const std::vector<std::string> slugs = {"one-seed0", "two-seed0"};
  EXPECT_EQ(lasting_results(folder_ / "a", slugs), lasting_results(folder_ / "b", slugs));
}

std::vector<pid_t> children_of(pid_t process) {
  const std::string id = std::to_string(process);
  std::ifstream in("/proc/" + id + "/task/" + id + "/children");
  return {std::istream_iterator<pid_t>(in), {}};
}

bool both_have_begun(const fs::path& out) {
  for (const char* slug : {"one-seed0", "two-seed0"}) {
    std::error_code none;
    const auto bytes = fs::file_size(out / "runs" / slug / "metrics.jsonl", none);
    if (none || bytes == 0) return false;
  }
  return true;
}

TEST_F(StudyCommandTest, StoppedWithSeveralRunsAtWorkItContinuesLater) {
  write_three_runs();
  const std::string only = "kind=one,two";
  Process study(folder_, {"study", "three.yaml", "--scale", "smoke", "--out", "out", "--only", only,
                          "--jobs", "2"});
  ASSERT_TRUE(study.becomes([&] { return both_have_begun(folder_ / "out"); }, 60))
      << study.errors();
  const auto workers = children_of(study.id());
  EXPECT_EQ(workers.size(), 2u);
  study.signal(SIGINT);
  const auto status = study.ended(60);
  ASSERT_TRUE(status) << study.errors();
  EXPECT_EQ(WEXITSTATUS(*status), 1) << study.errors();
  EXPECT_THAT(study.errors(), HasSubstr("the same command continues where it was"));
  for (const auto worker : workers) EXPECT_EQ(::kill(worker, 0), -1) << "still there";
  for (const char* slug : {"one-seed0", "two-seed0"}) {
    EXPECT_FALSE(fs::is_empty(folder_ / "out/runs" / slug / "checkpoints")) << slug;
    EXPECT_FALSE(fs::exists(folder_ / "out/runs" / slug / "result.json")) << slug;
  }
  const std::string again = "-q study three.yaml --scale smoke --jobs 2 --only " + only;
  ASSERT_EQ(riffle(again + " --out out").exit_code, 0);
  ASSERT_EQ(riffle(again + " --out whole").exit_code, 0);
  const std::vector<std::string> slugs = {"one-seed0", "two-seed0"};
  EXPECT_EQ(lasting_results(folder_ / "out", slugs), lasting_results(folder_ / "whole", slugs));
}

TEST_F(StudyCommandTest, AProcessThatDiesFailsItsRunAlone) {
  write_three_runs();
  Process study(folder_, {"study", "three.yaml", "--scale", "smoke", "--out", "out", "--only",
                          "kind=one,two", "--jobs", "2"});
  ASSERT_TRUE(study.becomes([&] { return both_have_begun(folder_ / "out"); }, 60))
      << study.errors();
  const auto workers = children_of(study.id());
  ASSERT_EQ(workers.size(), 2u);
  ::kill(workers.front(), SIGKILL);
  const auto status = study.ended(60);
  ASSERT_TRUE(status) << study.errors();
  EXPECT_EQ(WEXITSTATUS(*status), 1);
  EXPECT_THAT(study.errors(), HasSubstr("runs failed: "));
  EXPECT_THAT(study.errors(), HasSubstr("signal 9"));
  const auto json = nlohmann::json::parse(content(folder_ / "out/three.json"));
  int done = 0;
  for (const auto& run : json["runs"]) done += run["values"].is_null() ? 0 : 1;
  EXPECT_EQ(done, 1);
}

TEST_F(StudyCommandTest, SeedsBeginWhereTheyAreAskedTo) {
  const auto outcome =
      riffle("study unique-images --scale smoke --seed 7 --seeds 2 --dry-run --json");
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  const auto json = nlohmann::json::parse(outcome.out);
  ASSERT_EQ(json["runs"].size(), 6u);
  EXPECT_EQ(json["runs"][0]["run"], "1-seed7");
  EXPECT_EQ(json["runs"][3]["run"], "1-seed8");
}

TEST_F(StudyCommandTest, BadUsageIsRefused) {
  expect_refused("study unique-images --scale smoke --set train.bacth=3", "train.batch");
  expect_refused("study eficiency --scale smoke", "did you mean 'efficiency'");
  expect_refused("study correlated --scale tiny", "(valid: smoke, quick, small, paper)");
  expect_refused("study ./absent", "./absent");
  expect_refused("study efficiency --scale small", "--data");
  expect_refused("study absent.yaml --scale smoke", "absent.yaml");
  expect_refused("study unique-images --scale smoke --only image=1", "did you mean 'images'");
  expect_refused("study unique-images --scale smoke --only seed=1", "seed");
}

}  // namespace
}  // namespace riffle

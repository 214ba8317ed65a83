#include "riffle/study/study_runner.h"

#include <algorithm>
#include <cmath>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "riffle/base/error.h"
#include "riffle/base/file.h"
#include "riffle/base/text.h"
#include "riffle/image/codec.h"
#include "riffle/report/testing/markup_check.h"
#include "riffle/run/run_folder.h"
#include "riffle/run/training.h"
#include "riffle/study/measures.h"
#include "riffle/study/study_estimate.h"
#include "riffle/study/study_page.h"
#include "riffle/study/testing/studies.h"

namespace riffle {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::ThrowsMessage;

class StudyRunner : public StudyTest {};

void expect_same_accuracy(const RunResult& a, const RunResult& b) {
  const auto& first = a.points.back().accuracy;
  const auto& second = b.points.back().accuracy;
  ASSERT_EQ(first.size(), second.size());
  for (const auto& [set, accuracy] : first) {
    EXPECT_EQ(accuracy.linear_top1, second.at(set).linear_top1);
    EXPECT_EQ(accuracy.knn_top1, second.at(set).knn_top1);
  }
}

std::size_t event_files_in(const fs::path& folder) {
  return static_cast<std::size_t>(std::ranges::count_if(list_folder(folder), [](const auto& file) {
    return file.filename().string().starts_with("events.");
  }));
}

TEST_F(StudyRunner, ARunIsMadeOnceAndItsFolderIsLeftSmall) {
  const Study study = tiny();
  const auto first = run_study(study, folder_ / "out");
  EXPECT_EQ(first.made, 4u);
  EXPECT_TRUE(first.failed.empty());
  const RunResult& result = *first.results[1];
  EXPECT_EQ(result.points.front().update, 0);
  EXPECT_EQ(result.points.back().update, 40);
  EXPECT_EQ(result.values.at("updates"), 40);
  const auto run = RunFolder::open(folder_ / "out/runs/fifo-seed0");
  EXPECT_THAT(run.checkpoint_names(), ElementsAre("update-000000040"));

  const auto second = run_study(study, folder_ / "out");
  EXPECT_EQ(second.made, 0u);
  expect_same_accuracy(result, *second.results[1]);
}

TEST_F(StudyRunner, CountsTheJunkOfStreamsThatHaveAny) {
  const auto outcome = run_study(
      tiny("buffer.policy: fifo}", "buffer.policy: fifo, stream.shapes: 'junk:share=0.5'}"),
      folder_ / "out", {{"seed", {"0"}}});
  const RunResult& clean = *outcome.results[0];
  const RunResult& dirty = *outcome.results[1];
  EXPECT_TRUE(std::isnan(final_value(clean, "junk_in_batch", "made")));
  EXPECT_TRUE(std::isnan(final_value(clean, "junk_in_buffer", "made")));
  EXPECT_NEAR(final_value(dirty, "junk_in_batch", "made"), 50, 15) << "of a FIFO buffer";
  const double held = final_value(dirty, "junk_in_buffer", "made");
  EXPECT_GT(held, 10);
  EXPECT_LT(held, 90);
}

TEST_F(StudyRunner, AnInterruptedRunContinuesAndEndsTheSame) {
  const Study study = tiny("smoke: {seeds: 2}", "smoke: {drop: {mode: none}}");
  const auto whole = run_study(study, folder_ / "whole");
  const auto runs = expand(study);
  const fs::path path = run_folder_of(folder_ / "cut", runs[0]);
  train(runs[0].config, path);
  // As if it had been killed after its first checkpoint.
  const auto folder = RunFolder::open(path);
  const auto names = folder.checkpoint_names();
  for (std::size_t i = 1; i < names.size(); ++i) fs::remove(folder.manifest(names[i]));
  const auto resumed = run_study(study, folder_ / "cut");
  EXPECT_EQ(resumed.made, 1u);
  EXPECT_EQ(event_files_in(folder.tensorboard()), 2u) << "one of the beginning, one of the rest";
  expect_same_accuracy(*whole.results[0], *resumed.results[0]);
}

TEST_F(StudyRunner, AFailingRunDoesNotEndTheStudyAndIsNamed) {
  const Study study =
      tiny("buffer.policy: none}", "buffer.policy: none, stream.uri: 'synthetic:?samples=4'}");
  const auto outcome = run_study(study, folder_ / "out");
  EXPECT_EQ(outcome.made, 2u);
  ASSERT_EQ(outcome.failed.size(), 2u);
  EXPECT_EQ(outcome.failed[0].first, "none-seed0");
  EXPECT_THAT(outcome.failed[0].second, HasSubstr("ended"));
  const auto files = write_study(outcome, folder_ / "out", "command");
  const std::string page = read_text(files.page);
  EXPECT_EQ(markup_fault(page), "");
  EXPECT_THAT(page, HasSubstr("none-seed0 failed"));
}

TEST_F(StudyRunner, NothingIsBegunThatCannotBeMade) {
  const auto expect_refused = [this](const Study& study, const RunChoice& choice,
                                     const std::string& words) {
    EXPECT_THAT([&] { run_study(study, folder_ / "out", choice); },
                ThrowsMessage<Error>(HasSubstr(words)));
    EXPECT_FALSE(fs::exists(folder_ / "out"));
  };
  const Study absent =
      tiny("buffer.policy: fifo}", "buffer.policy: fifo, stream.uri: 'folder:absent'}");
  expect_refused(absent, {}, "the stream of fifo-seed0: ");
  EXPECT_EQ(run_study(absent, folder_ / "other", {{"mode", {"none"}}, {"seed", {"0"}}}).made, 1u)
      << "which needs no folder";
  expect_refused(tiny("val: 'synthetic:?", "val: 'folder:absent?"), {}, "probe.sets.made.val: ");
  expect_refused(tiny("buffer.policy: fifo}", "buffer.policy: fifo, stream.shapes: 'lop'}"), {},
                 "did you mean 'loop'");
  fs::create_directories(folder_ / "photos");
  write_atomically(folder_ / "photos/one.png", encode_png(Picture(16, 16)));
  expect_refused(tiny("val: 'synthetic:?frames=1&size=16&seed=92&samples=30&classes=4",
                      cat("val: 'folder:", (folder_ / "photos").string())),
                 {}, "photos/one.png') has no label; a probe needs");
  Study elsewhere = tiny();
  elsewhere.overrides = {{"run.device", "tpu"}};
  expect_refused(elsewhere, {}, "--device");
  elsewhere.overrides = {{"run.device", "cpu"}};
  EXPECT_EQ(expand(elsewhere)[0].config.learner.device, "cpu");
}

TEST_F(StudyRunner, AFolderWithRunsOfOtherSettingsIsRefused) {
  run_study(tiny("smoke: {seeds: 2}", "smoke: {drop: {mode: none}}"), folder_ / "out");
  const Study other =
      tiny("smoke: {seeds: 2}", "smoke: {drop: {mode: none}, set: {train.lr: 0.3}}");
  EXPECT_THAT([&] { run_study(other, folder_ / "out"); },
              ThrowsMessage<Error>(HasSubstr("other settings")));
}

TEST_F(StudyRunner, AResultFromBeforeAKeyExistedCountsWhenTheKeyHasItsDefault) {
  const Study study = tiny("smoke: {seeds: 2}", "smoke: {drop: {mode: none}}");
  const StudyRun run = expand(study).front();
  RunResult result;
  result.config = config_yaml(run.config);
  result.probe = study.probe.text();
  const std::string line = "  objective: simsiam\n";
  const auto at = result.config.find(line);
  ASSERT_NE(at, std::string::npos);
  result.config.erase(at, line.size());
  write_result(run_folder_of(folder_ / "out", run) / "result.json", result);
  EXPECT_TRUE(finished_result(folder_ / "out", study, run).has_value());
}

TEST_F(StudyRunner, WhatBeginsAgainKeepsOnlyUnfinishedRunsOfItsSettings) {
  const Study study = tiny();
  const fs::path out = folder_ / "out";
  run_study(study, out, {{"mode", {"fifo"}}});
  const auto has = [&](const char* slug) { return fs::exists(out / "runs" / slug); };
  begin_again(study, out, {});
  EXPECT_TRUE(has("fifo-seed0")) << "the study is not whole yet: it continues";
  begin_again(study, out, {{"seed", {"0"}}, {"mode", {"fifo"}}});
  EXPECT_FALSE(has("fifo-seed0")) << "all that was asked for is done";
  EXPECT_TRUE(has("fifo-seed1"));
  Study other = study;
  other.overrides = {{"train.lr", "0.3"}};
  begin_again(other, out, {});
  EXPECT_FALSE(has("fifo-seed1"));
}

TEST_F(StudyRunner, AnEstimateComesFromUpdatesThatWereTimedOrFromRunsThatAreDone) {
  const Study study = tiny();
  const auto before = estimate_study(study, folder_ / "out");
  ASSERT_EQ(before.runs.size(), 4u);
  EXPECT_GT(before.total(), 0);
  EXPECT_THAT(before.basis, HasSubstr("updates of the first run"));
  EXPECT_FALSE(fs::exists(folder_ / "out"));
  const Study part = tiny("smoke: {seeds: 2}", "smoke: {seeds: 1}");
  run_study(part, folder_ / "out");
  const auto after = estimate_study(study, folder_ / "out");
  EXPECT_TRUE(after.runs[0].done);
  EXPECT_FALSE(after.runs[2].done);
  EXPECT_GT(after.runs[2].seconds, 0);
  EXPECT_THAT(after.basis, HasSubstr("2 runs that are done"));
}

// Of a batch of 256 on the CPU, 8 samples are measured.
TEST_F(StudyRunner, UpdatesAreMeasuredWhateverShareOfTheirBatchIsFresh) {
  Config config = expand(tiny()).back().config;
  config.learner.train.batch = 256;
  for (const double share : {0.05, 0.99}) {
    config.learner.train.fresh = share;
    EXPECT_GT(measure_update(config).seconds, 0) << share;
  }
  config.learner.model.align_weight = 1;
  config.learner.train.fresh = 0.9;
  EXPECT_GT(measure_update(config).seconds, 0) << "aligned";
  config.learner.train.stream_batch = 3;
  config.learner.train.fresh = 0.01;
  EXPECT_GT(measure_update(config).seconds, 0) << "of small stream batches";
}

TEST_F(StudyRunner, NeedsAreOfTheDeviceThatTheConfigurationNames) {
  Config config = expand(tiny()).back().config;
  for (const std::string device : {"gpu", "cuda:0"}) {
    config.learner.device = device;
    try {
      EXPECT_GT(needs_of(config, {}).disk_bytes, 0u);
    } catch (const Error& error) {
      EXPECT_THAT(error.what(), HasSubstr("device " + device + ": "));
    }
  }
}

}  // namespace
}  // namespace riffle

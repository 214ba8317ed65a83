#include "riffle/study/study_runner.h"

#include <cmath>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "riffle/base/error.h"
#include "riffle/base/text.h"
#include "riffle/report/testing/markup_check.h"
#include "riffle/run/training.h"
#include "riffle/study/measures.h"
#include "riffle/study/study_estimate.h"
#include "riffle/study/study_figures.h"
#include "riffle/study/study_findings.h"
#include "riffle/study/study_page.h"
#include "riffle/study/study_pictures.h"
#include "riffle/study/study_probe.h"
#include "riffle/study/study_tables.h"
#include "riffle/study/testing/studies.h"

namespace riffle {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;
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

std::size_t files_in(const fs::path& folder) {
  return static_cast<std::size_t>(
      std::distance(fs::directory_iterator(folder), fs::directory_iterator()));
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
  EXPECT_EQ(files_in(folder.tensorboard()), 2u) << "one of the beginning, one of the rest";
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
  Study elsewhere = tiny();
  elsewhere.overrides = {{"run.device", "tpu"}};
  expect_refused(elsewhere, {}, "--device");
  elsewhere.overrides = {{"run.device", "cpu"}};
  EXPECT_EQ(expand(elsewhere)[0].config.learner.device, "cpu");
}

TEST_F(StudyRunner, SetsThatCouldNotBeReadAreNotTakenForWholeOnes) {
  const fs::path list = folder_ / "labels.txt";
  fs::copy_file(fs::path(RIFFLE_SOURCE_DIR) / "studies/smoke-labels.txt", list);
  const Study study =
      tiny("classes=4'}\nscales:\n  smoke: {seeds: 2}",
           "classes=4', val_shapes: 'lifelong:groups=1,only=1,list=" + list.string() +
               "'}\nscales:\n  smoke: {set: {train.max_updates: 4}, vary: {mode: {none: "
               "{stream.size: 20}}}}");
  const auto runs = expand(study);
  std::vector<RunFolder> folders;
  for (const auto& run : runs) {
    train(run.config, run_folder_of(folder_, run));
    folders.push_back(RunFolder::open(run_folder_of(folder_, run)));
  }
  StudyProbe probe(study.probe);
  EXPECT_FALSE(probe.measure_run(folders[0], runs[0])->points.back().accuracy.empty());
  fs::remove(list);
  EXPECT_THROW(probe.measure_run(folders[1], runs[1]), Error);
  EXPECT_THROW(probe.measure_run(folders[0], runs[0]), Error);
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

TEST_F(StudyRunner, TheStudyInTheDocumentationRunsAsWritten) {
  const std::string page = read_text(fs::path(RIFFLE_SOURCE_DIR) / "docs/studies.md");
  const std::string begin = "```yaml\n", end = "```\n";
  const auto from = page.find(begin) + begin.size();
  const std::string yaml = page.substr(from, page.find(end, from) - from);
  write_atomically(folder_ / "momentum.yaml", yaml);
  const Study study = load_study(folder_ / "momentum.yaml", "smoke", "");
  const auto outcome = run_study(study, folder_ / "out");
  for (const auto& [slug, why] : outcome.failed) ADD_FAILURE() << slug << ": " << why;
  EXPECT_EQ(outcome.made, 6u);
  const auto files = write_study(outcome, folder_ / "out", "command");
  EXPECT_EQ(files.page.filename(), "momentum.html");
}

TEST_F(StudyRunner, TablesHoldMeansOverSeedsAndThePapersNumbers) {
  const Study study = tiny();
  StudyOutcome outcome{study, expand(study), {}, {}, 0};
  for (const double accuracy : {10.0, 20.0, 12.0, 26.0}) {
    RunResult result;
    result.points.resize(1);
    result.points[0].accuracy["made"].linear_top1 = accuracy;
    result.values["updates"] = 40;
    outcome.results.emplace_back(result);
  }
  const Table table = study_table(outcome, study.shows[0]);
  std::vector<std::string> columns;
  for (const auto& column : table.columns) columns.push_back(column.name);
  EXPECT_THAT(columns, ElementsAre("mode", "linear top-1", "linear top-1, paper", "updates"));
  ASSERT_EQ(table.rows.size(), 2u);
  EXPECT_EQ(table.rows[0].cells[0].text, "Conventional");
  EXPECT_DOUBLE_EQ(table.rows[0].cells[1].value, 11);
  EXPECT_TRUE(std::isnan(table.rows[0].cells[2].value));
  EXPECT_DOUBLE_EQ(table.rows[1].cells[1].value, 23);
  EXPECT_NEAR(table.rows[1].cells[1].spread, 4.2426, 1e-4);
  EXPECT_DOUBLE_EQ(table.rows[1].cells[2].value, 12.5);

  outcome.results[3].reset();  // a run that failed does not count
  EXPECT_DOUBLE_EQ(study_table(outcome, study.shows[0]).rows[1].cells[1].value, 20);
}

// Linear accuracies of the tiny study's four runs: none, fifo of seed 0, then of seed 1.
StudyOutcome outcome_with(const Study& study, const std::vector<double>& accuracies) {
  StudyOutcome outcome{study, expand(study), {}, {}, 0};
  for (const double accuracy : accuracies) {
    RunResult result;
    result.points.resize(2);
    result.points[0].accuracy["made"].linear_top1 = 5;
    result.points[1].update = 40;
    result.points[1].accuracy["made"].linear_top1 = accuracy;
    outcome.results.emplace_back(result);
  }
  outcome.results.resize(outcome.runs.size());
  return outcome;
}

TEST_F(StudyRunner, AClaimHoldsDoesNotHoldOrIsTooCloseToTell) {
  const Study study = tiny("show:\n",
                           "claims:\n  - {claim: A buffer helps, of: {mode: fifo}, above: {mode: "
                           "none}}\nshow:\n");
  const auto finding = [&](const std::vector<double>& accuracies) {
    return study_findings(outcome_with(study, accuracies));
  };
  EXPECT_THAT(finding({10, 20, 12, 26}),
              ElementsAre("Held: A buffer helps. linear top-1 23.0 % (FIFO) against 11.0 % "
                          "(Conventional), a difference of +12.0 with a standard error of 3.2."));
  EXPECT_THAT(finding({20, 10, 22, 11}), ElementsAre(HasSubstr("Did not hold: ")));
  EXPECT_THAT(finding({20, 10, 22, 34}), ElementsAre(HasSubstr("Too close to tell: ")));
  EXPECT_THAT(finding({10, 20}), ElementsAre(HasSubstr("+10.0 between single runs.")));
  EXPECT_TRUE(finding({10}).empty()) << "there is nothing to compare with";
}

TEST_F(StudyRunner, BarsAndTablesShowTheUntrainedNetwork) {
  const Study study = tiny("  - table: Accuracy\n",
                           "  - {bars: Bars, rows: mode, y: linear_top1}\n"
                           "  - table: Accuracy\n    untrained: true\n");
  const auto outcome = outcome_with(study, {10, 20, 12, 26});
  const std::string svg = study_bars(outcome, study.shows[0]).svg;
  EXPECT_EQ(markup_fault(svg), "");
  EXPECT_THAT(svg, testing::AllOf(HasSubstr("FIFO"), HasSubstr("23.0"), HasSubstr("untrained")));
  const Table table = study_table(outcome, study.shows[1]);
  ASSERT_EQ(table.rows.size(), 3u);
  EXPECT_EQ(table.rows[0].cells[0].text, "Untrained");
  EXPECT_TRUE(table.rows[0].reference);
  EXPECT_DOUBLE_EQ(table.rows[0].cells[1].value, 5);
}

TEST_F(StudyRunner, PicturesAreOfTheStreamAndOfEachBuffer) {
  const Study study = tiny("show:\n", "show:\n  - {pictures: Kept, rows: mode, every: 4}\n");
  const auto outcome = run_study(study, folder_ / "out", parse_choice(study, {"seed=0"}));
  const auto sheets = study_pictures(outcome, study.shows[0], folder_ / "out");
  std::vector<std::string> titles;
  for (const auto& sheet : sheets) titles.push_back(sheet.title);
  EXPECT_THAT(titles, ElementsAre("The stream", "FIFO")) << "Conventional has no buffer";
  EXPECT_THAT(sheets[1].caption, HasSubstr("in 16 samples"));
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

TEST_F(StudyRunner, EvaluationsLieAtTheirVeryPlacesAndTheLastAtTheEnd) {
  const Study study = tiny("smoke: {seeds: 2}", "smoke: {drop: {mode: none}}");
  const auto outcome = run_study(study, folder_ / "out");
  std::vector<std::int64_t> updates;
  for (const auto& point : outcome.results[0]->points) updates.push_back(point.update);
  EXPECT_THAT(updates, ElementsAre(0, 10, 20, 30, 40));

  const std::vector<std::string> names = {"fill-000000001", "update-000000005", "update-000000010",
                                          "update-000000030", "update-000000035"};
  EXPECT_THAT(evaluation_checkpoints(names, 40, 4),
              ElementsAre("update-000000010", "update-000000030", "update-000000035"));
  EXPECT_THAT(evaluation_checkpoints(names, 35, 1), ElementsAre("update-000000035"));
  EXPECT_THAT(evaluation_checkpoints({"update-000000035"}, 70, 2), ElementsAre("update-000000035"));
}

TEST_F(StudyRunner, EvaluationsAreEvenWhereUpdatesCannotBeDividedByThem) {
  const auto updates = [](std::int64_t every, std::int64_t last, std::int64_t points) {
    std::vector<std::string> names;
    for (std::int64_t update = every; update < last; update += every) {
      names.push_back(RunFolder::checkpoint_name(update, 0));
    }
    names.push_back(RunFolder::checkpoint_name(last, 0));
    std::vector<std::int64_t> chosen;
    for (const auto& name : evaluation_checkpoints(names, last, points)) {
      chosen.push_back(std::stoll(name.substr(name.find('-') + 1)));
    }
    return chosen;
  };
  EXPECT_THAT(updates(1, 15, 8), ElementsAre(2, 4, 6, 7, 9, 11, 13, 15));
  EXPECT_THAT(updates(3, 31, 8), ElementsAre(3, 9, 12, 15, 18, 24, 27, 31));
  EXPECT_THAT(updates(752, 6020, 8), ElementsAre(752, 1504, 2256, 3008, 3760, 4512, 5264, 6020));
  EXPECT_THAT(updates(1, 3, 8), ElementsAre(1, 2, 3));
}

TEST_F(StudyRunner, ARunIsNeverAveragedWithItself) {
  Study study = tiny("y: same_clip_pairs", "y: linear_top1");
  study.seeds = {0};
  study.probe.points = 8;
  StudyOutcome outcome{study, expand(study), {}, {}, 0};
  for (auto& run : outcome.runs) run.config.learner.train.max_updates = 15;
  // As an earlier version left them: evaluations close to one another, then the end.
  RunResult result;
  for (const std::int64_t update : {0, 1, 2, 3, 4, 5, 6, 7, 15}) {
    ResultPoint point;
    point.update = update;
    point.accuracy["made"].linear_top1 = 20 + static_cast<double>(update);
    result.points.push_back(point);
  }
  outcome.results.assign(2, result);
  std::erase_if(outcome.results[1]->points,
                [](const auto& point) { return point.update % 2 == 1 && point.update < 15; });
  const std::string svg = study_lines(outcome, study.shows[1], folder_).at(0).svg;
  for (const char* mode : {"Conventional", "FIFO"}) {
    EXPECT_THAT(svg, HasSubstr(std::string(mode) + ": 22 at 2 updates")) << svg;
    EXPECT_THAT(svg, HasSubstr(std::string(mode) + ": 35 at 15 updates"));
  }
}

TEST_F(StudyRunner, PartsOfAStudyMadeApartComeTogetherOnThePage) {
  const Study study = tiny();
  const fs::path out = folder_ / "out";
  const auto queues = run_study(study, out, parse_choice(study, {"mode=fifo", "seed=0"}));
  EXPECT_EQ(queues.made, 1u);
  EXPECT_EQ(queues.done(), 1u);
  const auto part = write_study(queues, out, "command");
  const std::string page = read_text(part.page);
  EXPECT_EQ(markup_fault(page), "");
  EXPECT_THAT(page, HasSubstr("1 of 4 runs"));
  EXPECT_THAT(page, Not(HasSubstr("Conventional</td>"))) << "a row without a run";
  EXPECT_EQ(study_table(queues, study.shows[0]).rows.size(), 1u);

  // Two that run side by side: neither knows what the other is making.
  const auto rest = run_study(study, out, parse_choice(study, {"mode=fifo", "seed=1"}));
  const auto others = run_study(study, out, parse_choice(study, {"mode=none"}));
  EXPECT_EQ(others.made, 2u);
  EXPECT_EQ(rest.done(), 2u);
  write_study(others, out, "command");
  const auto whole = write_study(rest, out, "command");
  EXPECT_THAT(read_text(whole.page), Not(HasSubstr("Not all there yet")));
  const auto json = nlohmann::json::parse(read_text(whole.json));
  for (const auto& run : json["runs"]) EXPECT_FALSE(run["values"].is_null()) << run;
  EXPECT_EQ(run_study(study, out).made, 0u);
}

TEST_F(StudyRunner, FiguresAreLeftAsPicturesToo) {
  const Study study = tiny("smoke: {seeds: 2}", "smoke: {drop: {mode: none}}");
  const auto files = write_study(run_study(study, folder_ / "out"), folder_ / "out", "command");
  ASSERT_THAT(files.figures, ElementsAre(folder_ / "out/tiny-figure-1.svg"));
  const std::string svg = read_text(files.figures[0]);
  EXPECT_EQ(markup_fault(svg), "");
  EXPECT_THAT(svg, testing::StartsWith("<svg"));
  const auto json = nlohmann::json::parse(read_text(files.json));
  EXPECT_EQ(json["figures"][0]["file"], "tiny-figure-1.svg");
  EXPECT_EQ(json["figures"][0]["title"], "Pairs");
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

// So that `policies`, given the folder of `correlated`, finds its runs there.
TEST(RepositoryStudies, PoliciesAndCorrelatedHaveRunsInCommon) {
  const fs::path folder = fs::path(RIFFLE_SOURCE_DIR) / "studies";
  for (const std::string scale : {"smoke", "small", "paper"}) {
    const Study correlated = load_study(folder / "correlated.yaml", scale, "data");
    const Study policies = load_study(folder / "policies.yaml", scale, "data");
    EXPECT_EQ(correlated.probe.text(), policies.probe.text()) << scale;
    const auto theirs = expand(policies);
    std::size_t common = 0;
    for (const auto& run : expand(correlated)) {
      const auto found = std::ranges::find(theirs, run.slug, &StudyRun::slug);
      if (found == theirs.end()) continue;
      ++common;
      EXPECT_EQ(config_yaml(run.config), config_yaml(found->config)) << scale << ' ' << run.slug;
    }
    EXPECT_GE(common, 4u) << scale;
  }
}

// The studies of this repository, each from beginning to page.
class Smoke : public StudyTest, public testing::WithParamInterface<std::string> {};

TEST_P(Smoke, RunsAndLeavesAPageAndTables) {
  const fs::path file = fs::path(RIFFLE_SOURCE_DIR) / "studies" / (GetParam() + ".yaml");
  const Study study = load_study(file, "smoke", "");
  const auto outcome = run_study(study, folder_);
  for (const auto& [slug, why] : outcome.failed) ADD_FAILURE() << slug << ": " << why;
  const auto files = write_study(outcome, folder_, "riffle study " + GetParam());
  const std::string page = read_text(files.page);
  EXPECT_EQ(markup_fault(page), "");
  EXPECT_THAT(page, HasSubstr("riffle study " + GetParam()));
  for (const auto& shown : study.shows) EXPECT_THAT(page, HasSubstr(shown.title));
  const auto json = nlohmann::json::parse(read_text(files.json));
  EXPECT_EQ(json["tables"].size(), files.tables.size());
  EXPECT_EQ(json["runs"].size(), outcome.runs.size());
  for (const auto& shown : study.shows) {
    if (shown.kind != Shown::Kind::table) continue;
    const Table table = study_table(outcome, shown);
    EXPECT_FALSE(table.rows.empty()) << shown.title;
  }
  EXPECT_EQ(run_study(study, folder_).made, 0u);
}

INSTANTIATE_TEST_SUITE_P(Studies, Smoke,
                         testing::Values("efficiency", "bandwidth", "correlated", "lifelong",
                                         "unseen", "buffer-contents", "schedules", "unique-images",
                                         "policies", "hostile", "growing", "demo"),
                         [](const auto& study) {
                           std::string name = study.param;
                           std::ranges::replace(name, '-', '_');
                           return name;
                         });

}  // namespace
}  // namespace riffle

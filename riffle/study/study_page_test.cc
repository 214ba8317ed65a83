#include "riffle/study/study_page.h"

#include <cmath>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "riffle/report/testing/markup_check.h"
#include "riffle/study/study_figures.h"
#include "riffle/study/study_findings.h"
#include "riffle/study/study_pictures.h"
#include "riffle/study/study_runner.h"
#include "riffle/study/study_tables.h"
#include "riffle/study/testing/studies.h"

namespace riffle {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

class StudyPage : public StudyTest {};

TEST_F(StudyPage, TablesHoldMeansOverSeedsAndThePapersNumbers) {
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

TEST_F(StudyPage, AClaimHoldsDoesNotHoldOrIsTooCloseToTell) {
  const Study study = tiny("show:\n",
                           "claims:\n  - {claim: A buffer helps, of: {mode: fifo}, above: {mode: "
                           "none}}\nshow:\n");
  const auto finding = [&](const std::vector<double>& accuracies) {
    return study_findings(outcome_with(study, accuracies));
  };
  EXPECT_THAT(finding({10, 20, 12, 26}),
              ElementsAre("Held: A buffer helps. linear top-1 23.0 % (FIFO) against 11.0 % "
                          "(Conventional), a difference of +12.0 with a standard error of 2.0 "
                          "(paired over 2 runs)."));
  EXPECT_THAT(finding({20, 10, 22, 11}), ElementsAre(HasSubstr("Did not hold: ")));
  EXPECT_THAT(finding({20, 10, 22, 34}), ElementsAre(HasSubstr("Too close to tell: ")));
  EXPECT_THAT(finding({10, 20}), ElementsAre(HasSubstr("+10.0 between single runs.")));
  EXPECT_TRUE(finding({10}).empty()) << "there is nothing to compare with";
}

TEST_F(StudyPage, RunsOfASeedAreComparedInPairsIfAllOfASideHaveAPartner) {
  Study study = tiny("show:\n",
                     "claims:\n  - {claim: A buffer helps, of: {mode: fifo}, above: {mode: "
                     "none}}\nshow:\n");
  study.seeds = {0, 1, 2};
  // Seeds differ by far more than the two sides do.
  StudyOutcome outcome = outcome_with(study, {10, 11, 30, 32, 50, 53});
  EXPECT_THAT(study_findings(outcome),
              ElementsAre("Held: A buffer helps. linear top-1 32.0 % (FIFO) against 30.0 % "
                          "(Conventional), a difference of +2.0 with a standard error of 0.6 "
                          "(paired over 3 runs)."));
  outcome.results[1].reset();
  EXPECT_THAT(study_findings(outcome),
              ElementsAre(AllOf(HasSubstr("Held: "), HasSubstr("against 40.0 % (Conv"),
                                HasSubstr("(paired over 2 runs)"))));
  outcome.results[4].reset();  // neither side has all of the other's seeds
  EXPECT_THAT(study_findings(outcome),
              ElementsAre(AllOf(HasSubstr("FIFO) against 20.0 % (Conv"), Not(HasSubstr("pair")))));
}

TEST_F(StudyPage, RunsThatDifferInOtherAxesAreNotPairs) {
  const std::string claim = "claims:\n  - {claim: A buffer helps, of: {mode: fifo}, above: {mode: ";
  const auto findings = [&](const std::string& end, const std::vector<double>& accuracies) {
    const Study study =
        tiny("probe:\n", "  rate:\n    low: {train.lr: 0.01}\n    high: {train.lr: 0.1}\n" + claim +
                             end + "}}\nprobe:\n");
    return study_findings(outcome_with(study, accuracies));
  };
  // None at both rates, FIFO at both, of one seed, then of the other.
  const std::vector<double> accuracies = {10, 30, 12, 31, 50, 70, 51, 72};
  EXPECT_THAT(findings("none", accuracies),
              ElementsAre(AllOf(HasSubstr("Held: "), HasSubstr("(paired over 4 runs)"))));
  EXPECT_THAT(findings("none, rate: low", accuracies), ElementsAre(Not(HasSubstr("pair"))));
}

TEST_F(StudyPage, BarsAndTablesShowTheUntrainedNetwork) {
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

TEST_F(StudyPage, PicturesAreOfTheStreamAndOfEachBuffer) {
  const Study study = tiny("show:\n", "show:\n  - {pictures: Kept, rows: mode, every: 4}\n");
  const auto outcome = run_study(study, folder_ / "out", parse_choice(study, {"seed=0"}));
  const auto sheets = study_pictures(outcome, study.shows[0], folder_ / "out");
  std::vector<std::string> titles;
  for (const auto& sheet : sheets) titles.push_back(sheet.title);
  EXPECT_THAT(titles, ElementsAre("The stream", "FIFO")) << "Conventional has no buffer";
  EXPECT_THAT(sheets[1].caption, HasSubstr("in 16 samples"));
}

TEST_F(StudyPage, ARunIsNeverAveragedWithItself) {
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

TEST_F(StudyPage, PartsOfAStudyMadeApartComeTogetherOnThePage) {
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

TEST_F(StudyPage, FiguresAreLeftAsPicturesToo) {
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

}  // namespace
}  // namespace riffle

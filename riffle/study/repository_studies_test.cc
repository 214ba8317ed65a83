// The studies of this repository, and the one in its documentation.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "riffle/base/text.h"
#include "riffle/report/testing/markup_check.h"
#include "riffle/stream/stream.h"
#include "riffle/study/study_page.h"
#include "riffle/study/study_runner.h"
#include "riffle/study/study_tables.h"
#include "riffle/study/testing/studies.h"

namespace riffle {
namespace {

using testing::HasSubstr;

class RepositoryStudies : public StudyTest {};

TEST_F(RepositoryStudies, TheStudyInTheDocumentationRunsAsWritten) {
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

TEST_F(RepositoryStudies, WhatIsQuickNeedsNoDataAndNoGpu) {
  std::size_t studies = 0;
  for (const auto& file : fs::directory_iterator(fs::path(RIFFLE_SOURCE_DIR) / "studies")) {
    if (file.path().extension() != ".yaml") continue;
    if (read_text(file.path()).find("\n  quick:\n") == std::string::npos) continue;
    ++studies;
    for (const auto& run : expand(load_study(file.path(), "quick", ""))) {
      SCOPED_TRACE(cat(file.path().string(), ' ', run.slug));
      EXPECT_EQ(run.config.learner.device, "cpu");
      EXPECT_TRUE(open_stream(run.config.stream, run.config.shapes)->next());
    }
  }
  EXPECT_GE(studies, 4u);
}

// So that `policies`, given the folder of `correlated`, finds its runs there.
TEST_F(RepositoryStudies, PoliciesAndCorrelatedHaveRunsInCommon) {
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
    if (!shown.is_table()) continue;
    const Table table = study_table(outcome, shown);
    EXPECT_FALSE(table.rows.empty()) << shown.title;
  }
  EXPECT_EQ(run_study(study, folder_).made, 0u);
}

INSTANTIATE_TEST_SUITE_P(Studies, Smoke,
                         testing::Values("efficiency", "bandwidth", "correlated", "lifelong",
                                         "unseen", "buffer-contents", "schedules", "unique-images",
                                         "policies", "hostile", "growing", "hundred-million",
                                         "methods", "ocssl", "temporal", "demo"),
                         [](const auto& study) {
                           std::string name = study.param;
                           std::ranges::replace(name, '-', '_');
                           return name;
                         });

}  // namespace
}  // namespace riffle

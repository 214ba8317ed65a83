#include "riffle/pages/run_page.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "riffle/run/probe_record.h"
#include "riffle/run/testing/forging.h"
#include "riffle/run/testing/runs.h"

namespace riffle {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;
using RunPageTest = RunTest;

TEST_F(RunPageTest, ShowsWhatABufferHoldsAndRefusesOneThatIsForged) {
  Config config = tiny("fifo");
  config.learner.train.max_updates = 6;
  train(config, folder_ / "run");
  const std::vector<fs::path> runs = {folder_ / "run"};
  EXPECT_THAT(run_page(runs), HasSubstr("Of 32 samples at update-000000006"));

  const auto folder = RunFolder::open(folder_ / "run");
  const std::string newest = folder.checkpoint_names().back();
  forge_integers(folder, newest, "buffer.live", [](auto& live) { live[0] = 1 << 30; });
  EXPECT_THAT([&] { run_page(runs); }, testing::ThrowsMessage<DamagedCheckpoint>(
                                           AllOf(HasSubstr(newest), HasSubstr("slot 1073741824"))));
}

TEST_F(RunPageTest, ShowsNeighboursAndAMapWhetherOrNotThePolicyKeepsFeatures) {
  for (const std::string policy : {"merge", "fifo"}) {
    Config config = tiny(policy);
    config.learner.train.max_updates = 6;
    train(config, folder_ / policy);
    EXPECT_THAT(run_page(std::vector<fs::path>{folder_ / policy}),
                AllOf(HasSubstr("Neighbours in " + policy), HasSubstr("Map of " + policy),
                      HasSubstr("Features by their first two principal components")));
  }
}

TEST_F(RunPageTest, AfterAStopTheSamplesAreThoseOfTheResult) {
  Config config = tiny("fifo");
  config.learner.train.schedule = ScheduleKind::constant;
  config.learner.train.max_updates = 0;
  config.metrics.every = 1 << 20;
  config.max_hours = 0.2 / 3600;
  const auto result = train(config, folder_ / "run");
  EXPECT_TRUE(result.stopped);
  const std::string row =
      cat('>', result.updates, "</td><td class=\"n\">", result.samples_seen, '<');
  EXPECT_THAT(run_page(std::vector<fs::path>{folder_ / "run"}), HasSubstr(row));
}

TEST_F(RunPageTest, ProbesOnDifferentSetsAreDifferentCurves) {
  const auto folder = RunFolder::create(folder_ / "run", tiny("fifo"));
  const std::vector<fs::path> runs = {folder_ / "run"};
  append_probe(folder, {100, 30, 60, 20, "", "", "folder:cats"});
  EXPECT_THAT(run_page(runs), AllOf(HasSubstr("On folder:cats."), Not(HasSubstr("run on folder"))));
  append_probe(folder, {100, 90, 99, 80, "", "", "folder:dogs"});
  EXPECT_THAT(run_page(runs),
              AllOf(HasSubstr("run on folder:cats"), HasSubstr("run on folder:dogs"),
                    HasSubstr("On folder:cats, folder:dogs.")));
}

TEST_F(RunPageTest, SaysThatTheBuffersPicturesAreDamaged) {
  Config config = tiny("fifo");
  config.learner.train.max_updates = 6;
  train(config, folder_ / "run");
  for (const auto& file : list_folder(folder_ / "run/checkpoints")) {
    if (RunFolder::segment_of(file)) write_atomically(file, "damaged");
  }
  EXPECT_THAT(run_page(std::vector<fs::path>{folder_ / "run"}),
              AllOf(HasSubstr("What run keeps cannot be shown"), HasSubstr("pictures-")));
}

TEST_F(RunPageTest, SaysThatTheCheckpointIsOfAnotherConfiguration) {
  Config config = tiny("fifo");
  config.learner.train.max_updates = 6;
  train(config, folder_ / "run");
  const auto folder = RunFolder::open(folder_ / "run");
  folder.write_config(folder.config({"augment.size=24"}));
  EXPECT_THAT(run_page(std::vector<fs::path>{folder_ / "run"}),
              AllOf(HasSubstr("What run keeps cannot be shown"), HasSubstr("augment.size is")));
}

TEST_F(RunPageTest, ARunWithoutACheckpointHasAPageWithoutPictures) {
  RunFolder::create(folder_ / "run", tiny("fifo"));
  EXPECT_THAT(run_page(std::vector<fs::path>{folder_ / "run"}),
              AllOf(HasSubstr("has no line of metrics yet"), Not(HasSubstr("What they keep"))));
}

}  // namespace
}  // namespace riffle

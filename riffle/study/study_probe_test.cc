#include "riffle/study/study_probe.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "riffle/base/error.h"
#include "riffle/run/run_folder.h"
#include "riffle/run/training.h"
#include "riffle/study/study_runner.h"
#include "riffle/study/testing/studies.h"

namespace riffle {
namespace {

using testing::ElementsAre;

class StudyProbeTest : public StudyTest {};

TEST_F(StudyProbeTest, SetsThatCouldNotBeReadAreNotTakenForWholeOnes) {
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

TEST_F(StudyProbeTest, EvaluationsLieAtTheirVeryPlacesAndTheLastAtTheEnd) {
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

TEST_F(StudyProbeTest, EvaluationsAreEvenWhereUpdatesCannotBeDividedByThem) {
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

}  // namespace
}  // namespace riffle

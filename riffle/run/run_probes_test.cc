#include "riffle/run/run_probes.h"

#include <fstream>
#include <vector>

#include <gmock/gmock.h>

#include "riffle/run/testing/read_events.h"
#include "riffle/run/testing/runs.h"

namespace riffle {
namespace {

using Json = nlohmann::json;

class RunProbesTest : public RunTest {
 protected:
  RunProbesTest() {
    config_ = tiny("fifo");
    config_.learner.train.schedule = ScheduleKind::constant;
    config_.learner.train.max_updates = 10;
    config_.probe.train = "folder:train";
    config_.probe.val = "folder:val";
    config_.probe.every = 5;
    // Instead of riffle probe: "found" is as many percent as the checkpoint has updates.
    std::ofstream(folder_ / "probe.sh")
        << "update=$(echo \"$3\" | sed 's/update-0*//')\n"
           "printf '{\"update\":%s,\"linear_top1\":%s.5,\"linear_top5\":99,\"knn_top1\":%s.25,'"
           "'\"recipe\":\"\",\"train\":\"\",\"val\":\"%s\"}\\n'"
           " $update $update $update \"$7\" >> \"$1/probes.jsonl\"\n";
    options_.probe_program = {"/bin/sh", (folder_ / "probe.sh").string()};
  }

  Json last_line() const {
    return Json::parse(split(read_text(folder_ / "run/metrics.jsonl"), '\n').at(lines_ - 1));
  }

  std::vector<std::int64_t> probed() const {
    std::vector<std::int64_t> updates;
    for (const auto& record : read_probes(RunFolder::open(folder_ / "run"))) {
      if (record.val == config_.probe.val) updates.push_back(record.update);
    }
    return updates;
  }

  Config config_;
  TrainingOptions options_;
  std::size_t lines_ = 10;
};

TEST_F(RunProbesTest, TheLastProbeIsInTheLastLineOfMetrics) {
  train(config_, folder_ / "run", options_);
  EXPECT_EQ(last_line()["update"], 10);
  EXPECT_EQ(last_line()["probe_update"], 10);
  EXPECT_EQ(last_line()["probe_linear_top1"], 10.5);
  EXPECT_TRUE(last_line().contains("loss")) << "it is the line that was there before the probe";
  EXPECT_EQ(metrics_of(folder_ / "run").size(), 10u);
}

TEST_F(RunProbesTest, RecordsOfLaterUpdatesAndOfOtherSetsAreNotTakenForAResult) {
  train(config_, folder_ / "run", options_);
  const auto folder = RunFolder::open(folder_ / "run");
  append_probe(folder, {999, 90, 90, 90, "", "", "folder:val"});
  append_probe(folder, {20, 80, 80, 80, "", "", "folder:zoo"});
  resume(folder_ / "run", {"train.max_updates=20"}, EditedConfig::refuse, options_);
  lines_ = 20;
  EXPECT_EQ(last_line()["probe_update"], 20);
  EXPECT_EQ(last_line()["probe_knn_top1"], 20.25);
}

TEST_F(RunProbesTest, ARunThatIsDoneIsNotProbedAgainWhenItIsResumed) {
  train(config_, folder_ / "run", options_);
  const std::string records = read_text(folder_ / "run/probes.jsonl");
  resume(folder_ / "run", {}, EditedConfig::refuse, options_);
  EXPECT_EQ(read_text(folder_ / "run/probes.jsonl"), records);
  fs::remove(folder_ / "run/probes.jsonl");
  resume(folder_ / "run", {}, EditedConfig::refuse, options_);
  EXPECT_THAT(probed(), testing::ElementsAre(10)) << "its last probe was lost";
}

TEST_F(RunProbesTest, AProbeThatAStopCameBeforeIsMadeWhenTheRunContinues) {
  const auto folder = RunFolder::create(folder_ / "run", config_);
  const auto continued = [&](std::int64_t from, std::int64_t end) {
    RunProbes probes(folder, config_.probe, from, options_.probe_program,
                     [](const ProbeRecord&) {});
    probes.keep_up(RunFolder::checkpoint_name(from, 1), from);
    probes.finish(RunFolder::checkpoint_name(end, 1), end);
  };
  append_probe(folder, {4, 80, 80, 80, "", "", "folder:val"});
  append_probe(folder, {6, 80, 80, 80, "", "", "folder:zoo"});
  continued(7, 9);
  EXPECT_THAT(probed(), testing::ElementsAre(4, 7, 9)) << "5 was due";
  continued(9, 9);
  EXPECT_THAT(probed(), testing::ElementsAre(4, 7, 9));
  continued(12, 13);
  EXPECT_THAT(probed(), testing::ElementsAre(4, 7, 9, 12, 13)) << "10 was due";
  continued(14, 16);
  EXPECT_THAT(probed(), testing::ElementsAre(4, 7, 9, 12, 13, 16));
}

TEST_F(RunProbesTest, TensorBoardShowsAProbeAtItsOwnUpdateWithPicturesAndTheConfiguration) {
  config_.metrics.every = 4;
  train(config_, folder_ / "run", options_);
  resume(folder_ / "run", {"train.max_updates=21"}, EditedConfig::refuse, options_);
  const auto read = read_by_tensorboard(folder_ / "run");
  if (!read) GTEST_SKIP() << "needs tensorboard in a Python (scripts/setup --peers)";
  const Json& scalars = (*read)["scalars"];
  // A probe between the first and the last is made if there was time for it.
  for (const auto& [key, part] : {std::pair("probe_linear_top1", 0.5), {"probe_knn_top1", 0.25}}) {
    std::vector<int> steps;
    for (const auto& point : scalars[key]) {
      steps.push_back(point[0]);
      EXPECT_EQ(point[1], steps.back() + part) << key;
    }
    EXPECT_THAT(steps, testing::AllOf(testing::Contains(10), testing::Contains(21))) << key;
  }
  EXPECT_EQ(scalars["loss"].back()[0], 21);
  EXPECT_EQ((*read)["pictures"]["buffer"][0][0], 4);
  EXPECT_EQ((*read)["configuration"]["probe.val"], "folder:val");
  EXPECT_EQ((*read)["configuration"]["buffer.policy"], "fifo");
}

}  // namespace
}  // namespace riffle

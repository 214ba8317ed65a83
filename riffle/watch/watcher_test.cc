#include "riffle/watch/watcher.h"

#include <chrono>
#include <fstream>
#include <future>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include "riffle/run/probe_record.h"
#include "riffle/run/testing/runs.h"

namespace riffle {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using Json = nlohmann::json;

class WatcherTest : public RunTest {
 protected:
  static std::vector<std::string> names(Watcher& watcher) {
    std::vector<std::string> found;
    const Json all = Json::parse(watcher.runs());
    for (const auto& run : all["runs"]) found.push_back(run["name"]);
    return found;
  }
  static std::string id_of(Watcher& watcher, const std::string& name) {
    const Json all = Json::parse(watcher.runs());
    for (const auto& run : all["runs"]) {
      if (run["name"] == name) return run["id"];
    }
    return "";
  }
};

TEST_F(WatcherTest, FindsRunsBelowTheFolderAndNoneElsewhere) {
  fs::create_directories(folder_ / "runs/group");
  Watcher watcher(folder_ / "runs");
  EXPECT_THAT(names(watcher), ElementsAre());
  RunFolder::create(folder_ / "runs/b", tiny("fifo"));
  RunFolder::create(folder_ / "runs/group/a", tiny("fifo"));
  RunFolder::create(folder_ / "outside", tiny("fifo"));
  fs::create_directory_symlink(folder_ / "outside", folder_ / "runs/link");
  // What cannot be looked at is left out, and nothing else.
  fs::create_directory(folder_ / "runs/c");
  fs::create_symlink("config.yaml", folder_ / "runs/c/config.yaml");
  EXPECT_THAT(names(watcher), ElementsAre("b", "group/a"));
  Watcher one(folder_ / "outside");
  EXPECT_THAT(names(one), ElementsAre("outside"));
  EXPECT_THROW(Watcher(folder_ / "absent"), Error);
}

TEST_F(WatcherTest, PipesInPlaceOfARunsFilesAreNotWaitedFor) {
  RunFolder::create(folder_ / "runs/a", tiny("fifo"));
  for (const char* name : {"metrics.jsonl", "status.json", "probes.jsonl"}) {
    ASSERT_EQ(::mkfifo((folder_ / "runs/a" / name).c_str(), 0644), 0);
  }
  RunFolder::create(folder_ / "runs/b", tiny("fifo"));
  Watcher watcher(folder_ / "runs");
  auto seen = std::async(std::launch::async, [&] {
    const std::string a = id_of(watcher, "a");
    watcher.curves(a);
    return names(watcher);
  });
  ASSERT_EQ(seen.wait_for(std::chrono::seconds(20)), std::future_status::ready);
  EXPECT_THAT(seen.get(), ElementsAre("a", "b"));
}

TEST_F(WatcherTest, OnlyIdsOfItsRunsLeadAnywhere) {
  RunFolder::create(folder_ / "runs/b", tiny("fifo"));
  RunFolder::create(folder_ / "outside", tiny("fifo"));
  Watcher watcher(folder_ / "runs");
  for (const char* id : {"", "b", "../outside", "/etc", "%2e%2e", "0000000000000000"}) {
    EXPECT_FALSE(watcher.curves(id)) << id;
    EXPECT_FALSE(watcher.arrived(id)) << id;
    EXPECT_FALSE(watcher.kept(id)) << id;
  }
  EXPECT_TRUE(watcher.curves(id_of(watcher, "b")));
}

TEST_F(WatcherTest, PicturesOfTheNextCheckpointWaitUntilThoseBeforeHaveCostLittle) {
  train(tiny("merge"), folder_ / "runs/first");
  Watcher watcher(folder_ / "runs");
  const std::string id = id_of(watcher, "first");
  const auto before = watcher.kept(id);
  resume(folder_ / "runs/first", {"train.max_updates=22"});
  EXPECT_EQ(watcher.kept(id), before);
  EXPECT_EQ(Json::parse(*watcher.kept(id))["checkpoint"], "update-000000020");
  EXPECT_EQ(Json::parse(*Watcher(folder_ / "runs").kept(id))["checkpoint"], "update-000000022");
}

TEST_F(WatcherTest, ARunHasItsStateItsCurvesAndItsPictures) {
  Config config = tiny("merge");
  config.checkpoint.keep = 2;
  config.checkpoint.every = 8;
  train(config, folder_ / "runs/first");
  Watcher watcher(folder_ / "runs");
  const Json run = Json::parse(watcher.runs())["runs"][0];
  EXPECT_EQ(run["status"]["state"], "done");
  EXPECT_EQ(run["status"]["update"], 20);
  EXPECT_GE(run["status"]["delivered"], run["status"]["used"]);
  EXPECT_EQ(run["checkpoint"], "update-000000020");
  EXPECT_EQ(run["newest"]["update"], 20);

  const std::string id = run["id"];
  const Json curves = Json::parse(*watcher.curves(id));
  EXPECT_EQ(curves["updates"].size(), 20u);
  EXPECT_EQ(curves["curves"]["loss"].size(), 20u);

  const Json arrived = Json::parse(*watcher.arrived(id));
  ASSERT_FALSE(arrived.contains("error")) << arrived;
  EXPECT_EQ(arrived["pictures"].size(), 24u);
  const auto newest = run["newest"]["samples_seen"].get<int>() - 1;
  EXPECT_EQ(arrived["pictures"][0]["text"], cat("sample ", newest));

  const Json kept = Json::parse(*watcher.kept(id));
  ASSERT_FALSE(kept.contains("error")) << kept;
  std::vector<std::string> titles;
  for (const auto& sheet : kept["sheets"]) {
    titles.push_back(sheet["title"]);
    EXPECT_GT(sheet["pictures"].size(), 0u);
    for (const auto& picture : sheet["pictures"]) {
      EXPECT_THAT(picture["src"].get<std::string>(),
                  testing::StartsWith("data:image/jpeg;base64,"));
    }
  }
  EXPECT_THAT(titles, ElementsAre("What just left", "The most redundant", "The least redundant",
                                  "What is kept", "Neighbours"));
  EXPECT_EQ(kept["sheets"][4]["pictures"][0]["row"].size(), 5u);
  EXPECT_EQ(kept["map"].size(), 32u);
  EXPECT_TRUE(kept["sheets"][0]["pictures"][0].contains("beside"));
}

TEST_F(WatcherTest, ASourceOutOfReachAndProbesOnSeveralSetsAreTold) {
  const auto folder = RunFolder::create(folder_ / "runs/live", tiny("fifo"));
  const std::string counts =
      R"("time":1,"state":"training","update":7,"samples_used":8,"samples_delivered":9,)"
      R"("buffer_size":8,"buffer_capacity":32,"seconds_since_sample":20.5)";
  Watcher watcher(folder_ / "runs");
  const auto status = [&] { return Json::parse(watcher.runs())["runs"][0]["status"]; };
  write_atomically(folder.status(), cat('{', counts, '}'));  // of an earlier version
  EXPECT_EQ(status()["unreachable"], 0);
  write_atomically(folder.status(), cat('{', counts, R"(,"seconds_unreachable":12.5})"));
  EXPECT_EQ(status()["unreachable"], 12.5);
  EXPECT_EQ(status()["delivered"], 9);

  append_probe(folder, {5, 30, 60, 20, "", "", "folder:cats"});
  append_probe(folder, {5, 90, 99, 80, "", "", "folder:dogs"});
  const Json probes = Json::parse(*watcher.curves(id_of(watcher, "live")))["probes"];
  ASSERT_EQ(probes.size(), 2u);
  EXPECT_EQ(probes[0]["val"], "folder:cats");
  EXPECT_EQ(probes[1]["probe_knn"], 80);
}

TEST_F(WatcherTest, DamageAndNamesOfAnyBytesAreShownAsText) {
  RunFolder::create(folder_ / "runs/<b>\xff\x1b", tiny("fifo"));
  fs::create_directories(folder_ / "runs/broken");
  std::ofstream(folder_ / "runs/broken/config.yaml") << "train: {batch: [";
  Watcher watcher(folder_ / "runs");
  const Json runs = Json::parse(watcher.runs())["runs"];
  ASSERT_EQ(runs.size(), 2u);
  EXPECT_THAT(runs[0]["name"].get<std::string>(), testing::StartsWith("<b>"));
  EXPECT_THAT(runs[1]["error"].get<std::string>(), HasSubstr("config.yaml"));
  const auto kept = watcher.kept(runs[0]["id"]);
  ASSERT_TRUE(kept);
  EXPECT_THAT(Json::parse(*kept)["error"].get<std::string>(), HasSubstr("no checkpoint yet"));
}

}  // namespace
}  // namespace riffle

// A run that was interrupted ends as one that was not: weights, buffer and metrics, bit for bit.

#include <atomic>
#include <csignal>
#include <functional>
#include <new>
#include <set>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sched.h>

#include "riffle/base/error.h"
#include "riffle/base/file_faults.h"
#include "riffle/run/saved_buffer.h"
#include "riffle/run/testing/runs.h"

namespace riffle {
namespace {

using testing::HasSubstr;
using ResumeTest = RunTest;

struct Case {
  std::string name;
  std::string policy;
  FeatureTime features = FeatureTime::draw;
  Storage storage = Storage::raw;
  DrawRule draw = DrawRule::uniform;
  std::string objective = "simsiam";
  std::int64_t temporal = 0;
  Arch arch = Arch::resnet10;
};

Case with_method(const std::string& objective) {
  return {.name = objective,
          .policy = "merge",
          .features = FeatureTime::arrival,
          .objective = objective};
}

class ResumeEverywhere : public ResumeTest, public testing::WithParamInterface<Case> {};

TEST_P(ResumeEverywhere, EndsAsIfNothingHadHappened) {
  Config config = tiny(GetParam().policy);
  config.learner.model.objective = GetParam().objective;
  config.learner.model.arch = GetParam().arch;
  config.learner.buffer.features = GetParam().features;
  config.learner.buffer.storage = GetParam().storage;
  config.learner.buffer.draw = GetParam().draw;
  config.learner.augment.temporal = GetParam().temporal;
  config.learner.buffer.half_life = 50;  // read by merge alone
  if (GetParam().policy == "none") config.learner.train.updates = 1;
  const fs::path whole = folder_ / "whole";
  train(config, whole);
  for (const auto& checkpoint : some_checkpoints(whole, 4)) {
    const fs::path killed = killed_after(whole, checkpoint);
    const auto result = resume(killed);
    EXPECT_EQ(result.updates, 20);
    expect_same(killed, whole);
  }
}

INSTANTIATE_TEST_SUITE_P(
    All, ResumeEverywhere,
    testing::Values(
        Case{"none", "none"}, Case{"fifo", "fifo"}, Case{"reservoir", "reservoir"},
        Case{"minred", "minred"}, Case{"minred_arrival", "minred", FeatureTime::arrival},
        Case{"minred_jpeg", "minred", FeatureTime::draw, Storage::jpeg},
        Case{"merge", "merge", FeatureTime::arrival},
        Case{"merge_weighted", "merge", FeatureTime::draw, Storage::raw, DrawRule::weight},
        Case{.name = "temporal", .policy = "merge", .temporal = 3},
        Case{.name = "temporal_jpeg",
             .policy = "reservoir",
             .storage = Storage::jpeg,
             .temporal = 3},
        Case{"reservoir_jpeg", "reservoir", FeatureTime::draw, Storage::jpeg},
        Case{.name = "vit",
             .policy = "merge",
             .features = FeatureTime::arrival,
             .arch = Arch::vit_s},
        with_method("simclr"), with_method("byol"), with_method("vicreg"), with_method("visreg")),
    [](const auto& test) { return test.param.name; });

TEST_F(ResumeTest, PagesSeeTheSamplesThemselvesAndNotTheirPartners) {
  Config config = tiny("fifo");
  train(config, folder_ / "alone");
  config.learner.augment.temporal = 3;
  train(config, folder_ / "pairs");
  SavedBuffer alone(RunFolder::open(folder_ / "alone"));
  SavedBuffer pairs(RunFolder::open(folder_ / "pairs"));
  ASSERT_EQ(alone.samples().size(), pairs.samples().size());
  for (std::size_t i = 0; i < alone.samples().size(); ++i) {
    EXPECT_EQ(alone.pictures(std::vector{i})[0].rgb, pairs.pictures(std::vector{i})[0].rgb);
  }
  const auto newest = newest_arrivals(RunFolder::open(folder_ / "pairs"), 5);
  const auto expected = newest_arrivals(RunFolder::open(folder_ / "alone"), 5);
  ASSERT_EQ(newest.size(), expected.size());
  for (std::size_t i = 0; i < newest.size(); ++i) {
    EXPECT_EQ(newest[i].picture.rgb, expected[i].picture.rgb);
  }
}

TEST_F(ResumeTest, OnOtherCoresARunKeepsItsThreadsAndItsBits) {
  Config config = tiny("minred");
  config.learner.train.threads = 0;
  const fs::path whole = folder_ / "whole";
  train(config, whole);
  EXPECT_EQ(RunFolder::open(whole).config().learner.train.threads,
            std::max(1u, std::thread::hardware_concurrency()));
  const fs::path killed = killed_after(whole, some_checkpoints(whole, 2).front());
  cpu_set_t before, one;
  ASSERT_EQ(sched_getaffinity(0, sizeof(before), &before), 0);
  CPU_ZERO(&one);
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (!CPU_ISSET(cpu, &before)) continue;
    CPU_SET(cpu, &one);
    break;
  }
  ASSERT_EQ(sched_setaffinity(0, sizeof(one), &one), 0);
  resume(killed);
  sched_setaffinity(0, sizeof(before), &before);
  expect_same(killed, whole);
}

TEST_F(ResumeTest, WithAThreadForEachCoreARunKeepsTheirNumber) {
  Config config = tiny("fifo");
  config.learner.train.threads = 3;
  train(config, folder_ / "run");
  EXPECT_EQ(resume(folder_ / "run", {"train.threads=0", "train.max_updates=22"}).updates, 22);
  const auto folder = RunFolder::open(folder_ / "run");
  const std::int64_t cores = std::max(1u, std::thread::hardware_concurrency());
  EXPECT_EQ(folder.config().learner.train.threads, cores);
  EXPECT_THAT(read_checkpoint(folder, "update-000000022").config,
              HasSubstr(cat("threads: ", cores, '\n')));
}

TEST_F(ResumeTest, ALaterEndContinuesWhereARunWasDone) {
  Config config = tiny("reservoir");
  config.learner.train.schedule = ScheduleKind::constant;
  train(config, folder_ / "whole");
  config.learner.train.max_updates = 9;
  config.checkpoint.every = 0;
  train(config, folder_ / "part");
  EXPECT_EQ(resume(folder_ / "part").updates, 9) << "there is nothing left to do";
  EXPECT_EQ(resume(folder_ / "part", {"train.max_updates=20"}).updates, 20);
  expect_same(folder_ / "part", folder_ / "whole");
  EXPECT_EQ(RunFolder::open(folder_ / "part").config().learner.train.max_updates, 20);
  EXPECT_THROW(resume(folder_ / "part", {"train.lr=1"}), Error);
  EXPECT_THROW(resume(folder_ / "absent"), Error);
}

TEST_F(ResumeTest, AnEndBeforeTheUpdatesMadeIsRefused) {
  train(tiny("fifo"), folder_ / "run");
  EXPECT_THAT([&] { resume(folder_ / "run", {"train.max_updates=5"}); },
              testing::ThrowsMessage<Error>(testing::HasSubstr("has made 20 updates")));
  EXPECT_EQ(RunFolder::open(folder_ / "run").config().learner.train.max_updates, 20);
}

// How many samples fit into N bytes depends on the threads, each of which takes some of them.
TEST_F(ResumeTest, ACapacityInBytesStaysTheSameNumberOfSamples) {
  Config config = tiny("minred");
  config.learner.buffer.capacity = "2MB";
  train(config, folder_ / "run");
  EXPECT_EQ(resume(folder_ / "run", {"train.threads=2", "train.max_updates=22"}).updates, 22);
}

TEST_F(ResumeTest, TheEndOfARunHasALineOfMetricsAndAStopHasNone) {
  Config config = tiny("fifo");
  config.metrics.every = 8;
  train(config, folder_ / "whole");
  const auto lines = metrics_of(folder_ / "whole");
  ASSERT_EQ(lines.size(), 3u);
  EXPECT_EQ(nlohmann::json::parse(lines.back())["update"], 20);

  config.max_hours = 1e-9;
  train(config, folder_ / "stopped");
  resume(folder_ / "stopped", {"run.max_hours=0"});
  expect_same(folder_ / "stopped", folder_ / "whole");
}

TEST_F(ResumeTest, TheFirstLineAtOrAfterEachMultipleSaysHowRedundantTheBufferIs) {
  Config config = tiny("minred");
  config.metrics.every = 4;
  config.metrics.nearest_every = 6;
  train(config, folder_ / "run");
  std::vector<std::int64_t> updates;
  for (const auto& text : metrics_of(folder_ / "run")) {
    const auto line = nlohmann::json::parse(text);
    if (line.contains("nearest_50%")) updates.push_back(line["update"]);
  }
  EXPECT_THAT(updates, testing::ElementsAre(8, 12, 20));
}

TEST_F(ResumeTest, ARunWithoutACheckpointStartsAgain) {
  train(tiny("fifo"), folder_ / "whole");
  const fs::path killed = folder_ / "killed";
  fs::copy(folder_ / "whole", killed, fs::copy_options::recursive);
  fs::remove_all(killed / "checkpoints");
  resume(killed);
  expect_same(killed, folder_ / "whole");
}

TEST_F(ResumeTest, OnlyTheNewestCheckpointsAreKeptAndThePicturesTheyNeed) {
  Config config = tiny("fifo");
  config.checkpoint.keep = 2;
  config.learner.train.max_updates = 60;
  train(config, folder_ / "run");
  const auto folder = RunFolder::open(folder_ / "run");
  EXPECT_EQ(folder.checkpoint_names().size(), 2u);
  EXPECT_EQ(folder.checkpoint_names().back(), "update-000000060");
  std::set<std::string> files;
  for (const auto& entry : fs::directory_iterator(folder.checkpoints())) {
    files.insert(entry.path().filename());
  }
  std::set<std::string> expected;
  for (const auto& name : folder.checkpoint_names()) {
    expected.insert({name + ".json", name + ".safetensors"});
    for (const auto segment : checkpoint_segments(folder, name)) {
      expected.insert(RunFolder::segment_name(segment));
    }
  }
  for (const auto& name : expected) EXPECT_TRUE(files.contains(name)) << name;
  // Besides, the segment that was growing.
  EXPECT_LE(files.size(), expected.size() + 1);
}

TEST_F(ResumeTest, ADamagedCheckpointIsSetAsideForTheOneBefore) {
  train(tiny("minred"), folder_ / "whole");
  const auto damage = [](const fs::path& path, std::int64_t from_end) {
    auto bytes = read_bytes(path);
    bytes[bytes.size() - static_cast<std::size_t>(from_end)] ^= std::byte{4};
    write_atomically(path, bytes);
  };
  // A bit of the weights, a bit of the manifest, a manifest cut short, a state file that is gone.
  int kind = 0;
  for (const auto& newest : some_checkpoints(folder_ / "whole", 4)) {
    const fs::path killed = killed_after(folder_ / "whole", newest);
    const auto folder = RunFolder::open(killed);
    const auto names = folder.checkpoint_names();
    const auto manifest = folder.manifest(newest);
    const auto state = folder.state_file(newest);
    if (kind == 0) damage(state, 100);
    if (kind == 1) damage(manifest, 40);
    if (kind == 2) write_atomically(manifest, read_text(manifest).substr(0, 60));
    if (kind == 3) fs::remove(state);
    ++kind;
    testing::internal::CaptureStderr();
    set_log_level(LogLevel::warnings);
    resume(killed);
    set_log_level(LogLevel::quiet);
    const std::string said = testing::internal::GetCapturedStderr();
    EXPECT_THAT(said, HasSubstr(newest + " cannot be used"));
    EXPECT_THAT(said, HasSubstr("going back to " + names[names.size() - 2]));
    expect_same(killed, folder_ / "whole");
  }
}

TEST_F(ResumeTest, ADamagedPictureIsNoticedToo) {
  Config config = tiny("reservoir");
  train(config, folder_ / "whole");
  const auto checkpoints = some_checkpoints(folder_ / "whole", 2);
  const fs::path killed = killed_after(folder_ / "whole", checkpoints.back());
  const auto folder = RunFolder::open(killed);
  const auto newest = *checkpoint_segments(folder, checkpoints.back()).rbegin();
  const fs::path segment = folder.checkpoints() / RunFolder::segment_name(newest);
  auto bytes = read_bytes(segment);
  for (auto& byte : bytes) byte ^= std::byte{1};
  write_atomically(segment, bytes);
  resume(killed);
  expect_same(killed, folder_ / "whole");

  const fs::path hopeless = killed_after(folder_ / "whole", checkpoints.front());
  for (const auto& entry : fs::directory_iterator(hopeless / "checkpoints")) {
    if (entry.path().extension() == ".bin") fs::remove(entry.path());
  }
  const auto names = RunFolder::open(hopeless).checkpoint_names();
  EXPECT_THROW(resume(hopeless), Error);
  EXPECT_EQ(RunFolder::open(hopeless).checkpoint_names(), names) << "nothing was thrown away";
}

TEST_F(ResumeTest, DamagedPicturesThatAllCheckpointsShareCostOnlyThemselves) {
  for (const auto storage : {Storage::raw, Storage::jpeg}) {
    Config config = tiny("reservoir");
    config.learner.buffer.storage = storage;
    config.learner.train.max_updates = 12;
    config.learner.train.schedule = ScheduleKind::constant;
    const fs::path run = folder_ / cat("run-", static_cast<int>(storage));
    train(config, run);
    const auto folder = RunFolder::open(run);
    const auto newest = folder.checkpoint_names().back();
    // The oldest segment that is still in use is in every checkpoint. Each record is hit.
    const auto oldest = *checkpoint_segments(folder, newest).begin();
    const fs::path segment = folder.checkpoints() / RunFolder::segment_name(oldest);
    auto bytes = read_bytes(segment);
    for (std::size_t at = 40; at < bytes.size(); at += 64) bytes[at] ^= std::byte{1};
    write_atomically(segment, bytes);
    for (const auto& name : folder.checkpoint_names()) {
      if (!checkpoint_segments(folder, name).contains(oldest)) fs::remove(folder.manifest(name));
    }
    testing::internal::CaptureStderr();
    set_log_level(LogLevel::warnings);
    EXPECT_EQ(resume(run, {"train.max_updates=24"}).updates, 24);
    set_log_level(LogLevel::quiet);
    EXPECT_THAT(testing::internal::GetCapturedStderr(),
                HasSubstr("of 32 pictures in the buffer of " + newest + " are damaged"));
    // From then on it is whole again.
    EXPECT_EQ(resume(run, {"train.max_updates=30"}).updates, 30);
    EXPECT_EQ(state_of(run).back().second.size(0), 32);
  }
}

TEST_F(ResumeTest, ReadErrorsOnTheNewestCheckpointFallBackToTheOneBefore) {
  train(tiny("minred"), folder_ / "whole");
  const auto newest = some_checkpoints(folder_ / "whole", 2).front();
  const fs::path killed = killed_after(folder_ / "whole", newest);
  const std::string sick = newest + ".safetensors";
  {
    const FileFaults faults([&](FileStep step, const fs::path& path) {
      return FileFault{step == FileStep::read && path.filename() == sick ? EIO : 0};
    });
    resume(killed);
  }
  expect_same(killed, folder_ / "whole");
}

TEST_F(ResumeTest, MemoryThatRunsOutDoesNotMakeACheckpointDamaged) {
  train(tiny("minred"), folder_ / "whole");
  const auto newest = some_checkpoints(folder_ / "whole", 2).front();
  const fs::path killed = killed_after(folder_ / "whole", newest);
  {
    const FileFaults faults([&](FileStep step, const fs::path& path) {
      const bool reads = step == FileStep::read && path.filename() == newest + ".safetensors";
      if (reads) throw std::bad_alloc();
      return FileFault{};
    });
    EXPECT_THROW(resume(killed), std::bad_alloc);
  }
  EXPECT_EQ(RunFolder::open(killed).checkpoint_names().back(), newest);
  resume(killed);
  expect_same(killed, folder_ / "whole");
}

TEST_F(ResumeTest, ASecondProcessOnARunIsRefused) {
  train(tiny("fifo"), folder_ / "run");
  const auto writer = RunFolder::open_to_write(folder_ / "run");
  EXPECT_THAT([&] { resume(folder_ / "run"); },
              testing::ThrowsMessage<Error>(HasSubstr("in use by process")));
}

TEST_F(ResumeTest, AConfigurationThatChangedSinceTheCheckpointIsNamedAndRefused) {
  Config config = tiny("fifo");
  config.learner.train.max_updates = 6;
  const fs::path run = folder_ / "run", yaml = run / "config.yaml";
  train(config, run);
  const std::string whole = read_text(yaml);
  const auto edit = [&](const std::string& what, const std::string& with) {
    std::string text = whole;
    ASSERT_NE(text.find(what), std::string::npos) << what;
    write_atomically(yaml, text.replace(text.find(what), what.size(), with));
  };
  const auto refused = [](const std::string& words) {
    return testing::ThrowsMessage<Error>(testing::AllOf(
        HasSubstr("update-000000006"), HasSubstr(words), HasSubstr("--edited-config")));
  };
  edit("  seed: ", "  seed: 1");
  EXPECT_THAT([&] { resume(run, {"train.max_updates=8"}); }, refused("run.seed is '1"));
  write_atomically(yaml, whole.substr(0, whole.find("train:")));
  EXPECT_THAT([&] { resume(run, {"train.max_updates=8"}); }, refused("train.batch is"));
  EXPECT_EQ(RunFolder::open(run).checkpoint_names().back(), "update-000000006");

  edit("  max_updates: 6", "  max_updates: 7");
  const auto said_by = [](LogLevel level, const std::function<void()>& call) {
    testing::internal::CaptureStderr();
    set_log_level(level);
    call();
    set_log_level(LogLevel::quiet);
    return testing::internal::GetCapturedStderr();
  };
  const auto seven = [&] { EXPECT_EQ(resume(run).updates, 7) << "this key may change"; };
  EXPECT_THAT(said_by(LogLevel::info, seven),
              HasSubstr("continues with train.max_updates='7', was '6'"));
  const auto resumed = [&] { resume(run, {"train.max_updates=8", "train.threads=2"}); };
  EXPECT_EQ(said_by(LogLevel::warnings, resumed), "");
  resume(run, {"checkpoint.keep=5"});
  EXPECT_EQ(said_by(LogLevel::warnings, [&] { resume(run); }), "") << "no checkpoint has it yet";
  edit("  momentum: 0.9", "  momentum: 0.5");
  EXPECT_EQ(resume(run, {"train.max_updates=9"}, EditedConfig::accept).updates, 9);
  EXPECT_EQ(resume(run, {"train.max_updates=10"}).updates, 10) << "it is the run's own now";
}

TEST_F(ResumeTest, ALossThatIsNoLongerFiniteNamesTheNewestCheckpoint) {
  Config config = tiny("fifo");
  config.learner.train.lr = 1e30;
  EXPECT_THAT([&] { train(config, folder_ / "run"); },
              testing::ThrowsMessage<Error>(testing::AllOf(HasSubstr("the loss of update"),
                                                           HasSubstr("the newest checkpoint is"))));
}

TEST_F(ResumeTest, ASignalStopsInGoodOrder) {
  Config config = tiny("minred");
  config.learner.train.max_updates = 300;
  config.checkpoint.every = 20;
  config.checkpoint.keep = 2;
  config.checkpoint.wait = false;
  train(config, folder_ / "whole");
  // The signal comes with the first file of that name: while the buffer fills, or later.
  config.checkpoint.every = 3;
  for (const char* moment : {"pictures-", ".update-"}) {
    const fs::path run = folder_ / cat("stopped-", moment);
    std::atomic<bool> sent = false;
    TrainingResult result;
    {
      const FileFaults watch([&](FileStep step, const fs::path& path) {
        if (step == FileStep::open && path.filename().string().starts_with(moment) &&
            !sent.exchange(true)) {
          ::raise(SIGTERM);
        }
        return FileFault{};
      });
      result = train(config, run);
    }
    EXPECT_TRUE(sent) << moment;
    EXPECT_TRUE(result.stopped) << moment;
    EXPECT_LT(result.updates, 300) << moment;
    EXPECT_FALSE(resume(run).stopped);
    expect_same(run, folder_ / "whole");
  }
}

TEST_F(ResumeTest, StoppedBeforeTheFirstBatchARunContinuesToo) {
  Config config = tiny("minred");
  train(config, folder_ / "whole");
  config.max_hours = 1e-12;
  EXPECT_TRUE(train(config, folder_ / "run").stopped);
  EXPECT_FALSE(resume(folder_ / "run", {"run.max_hours=0"}).stopped);
  expect_same(folder_ / "run", folder_ / "whole");
}

TEST_F(ResumeTest, ATimeLimitStopsARunThatCanContinue) {
  Config config = tiny("fifo");
  config.learner.train.max_updates = 0;
  config.learner.train.schedule = ScheduleKind::constant;
  config.checkpoint.every = 50;
  config.max_hours = 0.3 / 3600;
  const auto first = train(config, folder_ / "run");
  EXPECT_TRUE(first.stopped);
  const auto second = resume(folder_ / "run");
  EXPECT_TRUE(second.stopped);
  EXPECT_GT(second.updates, first.updates);
}

}  // namespace
}  // namespace riffle

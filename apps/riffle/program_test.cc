// The program as a user meets it: exit codes, one-line complaints, JSON, the files it leaves.

#include "apps/riffle/testing/program.h"

#include <csignal>
#include <fstream>
#include <string>
#include <vector>

#include "apps/riffle/testing/process.h"
#include <nlohmann/json.hpp>

namespace riffle {
namespace {

TEST_F(ProgramTest, EveryCommandHasHelpThatEndsWithAnExample) {
  EXPECT_EQ(riffle("--help").exit_code, 0);
  for (const char* command : {"demo", "train", "resume", "probe", "stream", "buffer", "curate",
                              "embed", "export", "report", "watch", "study", "config", "completion",
                              "bench load", "bench step", "bench pipeline", "bench minred"}) {
    const auto outcome = riffle(std::string(command) + " --help");
    EXPECT_EQ(outcome.exit_code, 0) << command;
    EXPECT_THAT(outcome.out, HasSubstr("Example")) << command;
  }
}

TEST_F(ProgramTest, VersionNamesTheLibrariesBuiltIn) {
  const auto outcome = riffle("--version");
  EXPECT_EQ(outcome.exit_code, 0);
  for (const char* library :
       {"LibTorch", "libjpeg-turbo", "libpng", "yaml-cpp", "CLI11", "nlohmann-json", "spdlog",
        "libarchive", "libcurl", "FFmpeg", "cpp-httplib"}) {
    EXPECT_THAT(outcome.out, testing::ContainsRegex(std::string("\n") + library + " +[0-9n]"));
  }
}

TEST_F(ProgramTest, BadUsageIsRefusedInOneLineWithExitCode2) {
  expect_refused("", "subcommand");
  expect_refused("trian", "trian");
  expect_refused("-q trian", "did you mean 'train'?");
  expect_refused("bench lod", "unknown command 'bench lod'; did you mean 'bench load'?");
  expect_refused("probe run --backgroun", "did you mean");
  EXPECT_THAT(riffle("probe run --backgroun").err, Not(HasSubstr("'--background'")));
  expect_refused("train", "--run");
  expect_refused("buffer r --originals", "--export");
  expect_refused("buffer r --count 3", "--export");
  expect_refused("probe r --train a: --val b: --samples -5", "--samples");
  expect_refused("train --run ''", "the name of the run folder is empty");
  expect_refused("resume ''", "'' is not a run folder");
  expect_refused("resume absent", "absent does not exist");
  std::ofstream(folder_ / "file.txt") << "text";
  expect_refused("resume file.txt", "file.txt is a file, not a run folder");
  expect_refused("train --run file.txt", "file.txt is a file, not a folder");
  expect_refused("train --run r --batch 8 --batch 16", "--batch is given more than once");
  expect_refused("train --run r --bacth 3", "bacth");
  expect_refused("train --run r --batch many", "train.batch");
  expect_refused("train --run r --set train.bacth=3", "did you mean 'train.batch'?");
  expect_refused("train --run r --stream nowhere:x", "nowhere");
  expect_refused("train --run r --stream 'synthetic:?farmes=3'", "did you mean 'frames'?");
  expect_refused("train --run r2 --stream folder:absent", "absent");
  expect_refused("train --run r3 --buffer none --updates 5", "contradicts");
  expect_refused("train --run r4 --config absent.yaml", "absent.yaml");
  expect_refused("probe absent --train synthetic: --val synthetic:", "absent");
  expect_refused("stream 'synthetic:?size=-1'", "size");
}

TEST_F(ProgramTest, AMessageAboutAFlagNamesTheFlag) {
  expect_refused("train --run r --batch many", "--batch many: train.batch");
  expect_refused("train --run r --buffer fofi", "--buffer fofi: ");
  expect_refused("train --run r --batch 1", "--batch 1: train.batch must be at least 2");
  expect_refused("train --run r --lr 0", "--lr 0: train.lr must be above 0");
  expect_refused("train --run r --updates 0", "--updates 0: train.updates must be at least 1");
  expect_refused("train --run r --keep 0", "--keep 0: checkpoint.keep must be at least 1");
  expect_refused("train --run r --max-updates 0 --schedule cosine",
                 "--schedule cosine: train.schedule=cosine needs train.max_updates");
  expect_refused("train --run r --batch 8 --set train.updates=0", "riffle: train.updates must be");
  expect_refused("train --run r --lr 0.1 --set train.lr=0.2",
                 "--lr 0.1 contradicts --set train.lr=0.2");
  expect_refused("train --run r --buffer fifo --features draw",
                 "--features draw has no effect with --buffer fifo");
  expect_refused("train --run r --capacity 1M", "64k");
  expect_refused("train --run r --device gpus", "did you mean 'gpu'?");
  EXPECT_EQ(riffle("train --run r " + kTiny + "--set train.batch=8").exit_code, 0);
}

TEST_F(ProgramTest, AnEndlessSetIsRefusedUnlessANumberOfSamplesIsGiven) {
  ASSERT_EQ(riffle("train --run run " + kTiny).exit_code, 0);
  const std::string endless = "'synthetic:?size=16&frames=1'";
  expect_refused("probe run --train " + endless + " --val " + endless, "--samples N");
  expect_refused("embed run --out a.npy --input " + endless, "--samples N");
  expect_refused("embed run --out a.npy --input 'synthetic:?samples=9' --shape loop",
                 "--samples N");
  const auto same = riffle("probe run --samples 50 --train " + endless + " --val " + endless);
  EXPECT_EQ(same.exit_code, 0) << same.err;
  EXPECT_THAT(same.err, HasSubstr("--train and --val are the same set"));
}

TEST_F(ProgramTest, AStreamShorterThanTheBufferIsNamedWithWhatToDo) {
  expect_refused("-q train --run run " + kTiny + "--shape limit:samples=27",
                 "the stream ended after 27 samples, before the buffer of 32 was full; give "
                 "--capacity 24 or less, or repeat it: --shape loop");
  expect_refused("-q train --run run " + kTiny + "--shape limit:samples=5",
                 "the stream ended after 5 samples");
  const auto looped = riffle("train --run run " + kTiny + "--shape limit:samples=27,loop");
  EXPECT_EQ(looped.exit_code, 0);
  EXPECT_THAT(looped.err, HasSubstr("repeats itself after 27 samples"));
  EXPECT_THAT(looped.err, HasSubstr("--capacity 27"));
  EXPECT_THAT(looped.err, HasSubstr("filling the buffer"));
  EXPECT_THAT(looped.err, HasSubstr("of disk"));
  const auto enough = riffle("train --run long " + kTiny + "--shape limit:samples=32,loop");
  EXPECT_THAT(enough.err, testing::Not(HasSubstr("repeats itself")));
}

TEST_F(ProgramTest, TrainThenProbeGivesAccuraciesBesideTheUntrainedNetwork) {
  const auto trained = riffle("train --run run --json " + kTiny);
  ASSERT_EQ(trained.exit_code, 0) << trained.err;
  const auto result = nlohmann::json::parse(trained.out);
  EXPECT_EQ(result["updates"], 20);
  EXPECT_EQ(result["samples_seen"], 32 + 9 * 8);
  for (const char* key : {"run", "loss", "images_per_s", "skipped"})
    EXPECT_TRUE(result.contains(key)) << key;
  EXPECT_TRUE(fs::exists(folder_ / "run/config.yaml"));
  EXPECT_TRUE(fs::exists(folder_ / "run/metrics.jsonl"));
  EXPECT_TRUE(fs::exists(folder_ / "run/checkpoints/update-000000020.safetensors"));

  const auto probed = riffle(
      "probe run --json --train 'synthetic:?size=16&seed=7&frames=1&samples=200' "
      "--val 'synthetic:?size=16&seed=8&frames=1&samples=100'");
  ASSERT_EQ(probed.exit_code, 0) << probed.err;
  const auto accuracy = nlohmann::json::parse(probed.out);
  for (const char* key : {"linear_top1", "linear_top5", "knn_top1"}) {
    EXPECT_GE(accuracy[key], 0) << key;
    EXPECT_LE(accuracy[key], 100) << key;
    EXPECT_TRUE(accuracy["untrained"].contains(key)) << key;
  }
  EXPECT_FALSE(accuracy["recipe"].get<std::string>().empty());

  expect_refused("train --run run " + kTiny, "holds a run already");
}

TEST_F(ProgramTest, ALookAtAStreamThatIsInterruptedShowsWhatCame) {
  Process process(folder_, {"stream", "synthetic:?size=16", "--samples", "1000000000", "--json"});
  ASSERT_TRUE(process.says(" samples, ", 30)) << process.errors();
  process.signal(SIGINT);
  ASSERT_EQ(process.ended(20), 0) << process.errors();
  EXPECT_GT(nlohmann::json::parse(process.output())["samples"], 0);
  EXPECT_TRUE(fs::exists(folder_ / "contact.png"));
}

TEST_F(ProgramTest, ProbesAlongTrainingAreKeptInTheRun) {
  const std::string sets =
      "--probe-train 'synthetic:?size=16&seed=7&frames=1&samples=100' "
      "--probe-val 'synthetic:?size=16&seed=8&frames=1&samples=50' ";
  expect_refused("train --run run " + kTiny + "--probe-train synthetic:", "--probe-val");
  expect_refused("train --run run " + kTiny + "--probe-train synthetic: --probe-val folder:absent",
                 "probe.train: synthetic: never ends; say how much of it to read: --set "
                 "probe.samples=N");
  expect_refused("train --run run " + kTiny +
                     "--set probe.samples=9 --probe-train synthetic: "
                     "--probe-val folder:absent",
                 "probe.val: cannot read the folder absent");
  expect_refused("train --run run " + kTiny + "--set probe.every=10",
                 "probe.every=10 does nothing without sets to probe on");
  const auto trained = riffle("train --run run " + kTiny + sets + "--set probe.every=10");
  ASSERT_EQ(trained.exit_code, 0) << trained.err;
  EXPECT_THAT(trained.err, HasSubstr("probe of update 20: linear"));
  std::ifstream probes(folder_ / "run/probes.jsonl");
  std::vector<std::int64_t> updates;
  for (std::string line; std::getline(probes, line);) {
    const auto probe = nlohmann::json::parse(line);
    updates.push_back(probe["update"]);
    EXPECT_GE(probe["knn_top1"], 0);
  }
  // The one of update 10 is of whatever checkpoint was the newest when it could be begun.
  ASSERT_FALSE(updates.empty());
  EXPECT_EQ(updates.back(), 20);
  std::ifstream metrics(folder_ / "run/metrics.jsonl");
  nlohmann::json last;
  for (std::string line; std::getline(metrics, line);) last = nlohmann::json::parse(line);
  EXPECT_EQ(last["update"], 20);
  EXPECT_EQ(last["probe_update"], 20);

  const auto probed = riffle(
      "probe run --trained-only --train 'synthetic:?size=16&seed=7&frames=1&samples=100' "
      "--val 'synthetic:?size=16&seed=8&frames=1&samples=50'");
  EXPECT_EQ(probed.exit_code, 0) << probed.err;
  EXPECT_EQ(riffle("report run").exit_code, 0);
  std::ifstream page(folder_ / "run/report.html");
  const std::string html(std::istreambuf_iterator<char>(page), {});
  EXPECT_THAT(html, HasSubstr("k-NN probe"));
}

TEST_F(ProgramTest, ARunThatProducedNoCheckpointMayBeTriedAgain) {
  const std::string train = "-q train --run run " + kTiny + " --shape limit:samples=";
  expect_refused(train + "24", "give --capacity 24 or less");
  EXPECT_EQ(riffle(train + "48").exit_code, 0);
  expect_refused(train + "48", "holds a run already");
}

TEST_F(ProgramTest, AMisspeltOptionIsNamedWithItsNeighbour) {
  expect_refused("train --strem folder:photos --run run", "did you mean '--stream'?");
  expect_refused("bench load --rouns=3", "did you mean '--rounds'?");
  EXPECT_EQ(riffle("config -q").exit_code, 0);
}

TEST_F(ProgramTest, AFolderThatCannotBeMadeIsNamed) {
  std::ofstream(folder_ / "file") << "text";
  for (const std::string& command :
       {"train --run file/run " + kTiny, std::string("demo --out file/page")}) {
    const auto outcome = riffle(command);
    EXPECT_EQ(outcome.exit_code, 2);
    EXPECT_THAT(outcome.err, HasSubstr("file is a file, not a folder; give another name"));
  }
}

TEST_F(ProgramTest, AProfileSaysWhereTheTimeGoesOrWhyItCannot) {
  EXPECT_THAT(riffle("train --profile --run short " + kTiny).err, HasSubstr("no profile"));
  EXPECT_THAT(riffle("train --profile --run long " + kTiny.substr(0, kTiny.find("--max-updates")) +
                     "--max-updates 30")
                  .err,
              testing::AllOf(HasSubstr("updates 21 to 30"), HasSubstr("waits for the stream")));
}

TEST_F(ProgramTest, AStreamThatEndsBeforeTheRunIsNamed) {
  EXPECT_THAT(riffle("train --run short " + kTiny + " --shape limit:samples=48").err,
              HasSubstr("the stream ended after 48 samples, at update 6 of 20"));
  EXPECT_THAT(riffle("train --run whole " + kTiny).err, Not(HasSubstr("the stream ended")));
}

TEST_F(ProgramTest, ConfigPrintsWhatTrainReads) {
  const auto printed =
      riffle("config > my.yaml && '" RIFFLE_PROGRAM "' train --config my.yaml --run run " + kTiny);
  EXPECT_EQ(printed.exit_code, 0) << printed.err;
  EXPECT_THAT(riffle("config run").out, HasSubstr("batch: 8"));
}

TEST_F(ProgramTest, APresetIsListedPrintedAndGivesWayToFlags) {
  EXPECT_THAT(riffle("train --help").out, HasSubstr("model.objective=simclr"));
  EXPECT_THAT(riffle("config --preset stream").out, HasSubstr("objective: simclr"));
  const auto trained =
      riffle("train --preset stream --run run " + kTiny + " --set buffer.weight_limit=4");
  EXPECT_EQ(trained.exit_code, 0) << trained.err;
  const std::string used = riffle("config run").out;
  EXPECT_THAT(used, testing::AllOf(HasSubstr("objective: simclr"), HasSubstr("batch: 8"),
                                   HasSubstr("weight_limit: 4")));
  expect_refused("train --preset streem --run other " + kTiny, "did you mean 'stream'");
  expect_refused("config run --preset stream", "not both");
}

TEST_F(ProgramTest, StreamLeavesAContactSheetAndItsFigures) {
  const auto outcome =
      riffle("stream 'synthetic:?frames=8' --samples 200 --sheet sheet.png --json");
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  const auto figures = nlohmann::json::parse(outcome.out);
  EXPECT_EQ(figures["samples"], 200);
  EXPECT_EQ(figures["clips"], 25);
  for (const char* key : {"frames_per_s", "labels", "skipped", "same_clip_pairs"}) {
    EXPECT_TRUE(figures.contains(key)) << key;
  }
  EXPECT_TRUE(fs::exists(folder_ / "sheet.png"));
  expect_refused("stream synthetic: --sheet sheet.jpg", "is a .png");
}

TEST_F(ProgramTest, ShapesWrapTheStreamInTheOrderGiven) {
  const auto outcome = riffle(
      "stream 'synthetic:?frames=8' --shape clips:length=4,size=16 --shape limit:samples=100 "
      "--json");
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  const auto figures = nlohmann::json::parse(outcome.out);
  EXPECT_EQ(figures["samples"], 100);
  EXPECT_EQ(figures["clips"], 25);
  EXPECT_EQ(figures["width"][0], 16);

  const auto trained = riffle("train --run run --json " + kTiny +
                              " --shape subsample:every=2 --shape limit:samples=64");
  ASSERT_EQ(trained.exit_code, 0) << trained.err;
  EXPECT_EQ(nlohmann::json::parse(trained.out)["samples_seen"], 64);
  EXPECT_THAT(riffle("config run").out, HasSubstr("subsample:every=2,limit:samples=64"));

  const auto probed = riffle(
      "probe run --json --train 'synthetic:?size=16&seed=7' --train-shape clips:length=1 "
      "--train-shape limit:samples=200 --val 'synthetic:?size=16&seed=8' --val-shape "
      "subsample:every=64,limit:samples=50");
  EXPECT_EQ(probed.exit_code, 0) << probed.err;

  expect_refused("stream synthetic: --shape clip:length=3", "did you mean 'clips'?");
  expect_refused("train --run r5 --shape clips:lenght=3", "did you mean 'length'?");
}

TEST_F(ProgramTest, AShortDemoComparesAllModesButTheReferenceAndWritesItsPage) {
  const auto outcome =
      riffle("demo --json --out page --set train.max_updates=12 --set model.width=4");
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  const auto result = nlohmann::json::parse(outcome.out);
  std::vector<std::string> modes;
  for (const auto& mode : result["modes"]) {
    modes.push_back(mode["mode"]);
    EXPECT_EQ(mode["updates"], 12);
    for (const char* key :
         {"linear_top1", "knn_top1", "same_clip_pairs", "clips_in_buffer", "seconds"}) {
      EXPECT_TRUE(mode.contains(key)) << key;
    }
  }
  EXPECT_THAT(modes, testing::ElementsAre("conventional", "fifo", "reservoir", "minred", "merge"));
  EXPECT_TRUE(result["untrained"].contains("linear_top1"));
  EXPECT_TRUE(fs::exists(folder_ / result["report"].get<std::string>()));
  EXPECT_EQ(result["report"], "page/report.html");
}

TEST_F(ProgramTest, ADemoOfChosenModesAndSeedsBeginsAgainInItsFolder) {
  const std::string demo = "-q demo --json --set train.max_updates=12 --set model.width=4 ";
  const auto both = riffle(demo + "--seed 3,4 --only mode=fifo,decorrelated --jobs 2");
  ASSERT_EQ(both.exit_code, 0) << both.err;
  const auto result = nlohmann::json::parse(both.out);
  EXPECT_EQ(result["seed"], 3);
  EXPECT_THAT(result["run_seeds"].get<std::vector<int>>(),
              testing::ElementsAre(3000, 3001, 4000, 4001));
  ASSERT_EQ(result["modes"].size(), 2u);
  EXPECT_EQ(result["modes"][1]["mode"], "decorrelated") << "which is there when asked for";
  EXPECT_EQ(result["modes"][1]["linear_top1_runs"].size(), 4u);
  EXPECT_EQ(result["report"], "demo/report.html");

  // A folder with runs of other settings, or with a whole demo, is not an obstacle.
  const auto other = riffle(demo + "--seed 3 --only mode=fifo --set train.lr=0.1");
  ASSERT_EQ(other.exit_code, 0) << other.err;
  const auto again = riffle(demo + "--seed 3 --only mode=fifo --set train.lr=0.1");
  ASSERT_EQ(again.exit_code, 0) << again.err;
  EXPECT_EQ(nlohmann::json::parse(other.out)["modes"][0]["linear_top1_runs"],
            nlohmann::json::parse(again.out)["modes"][0]["linear_top1_runs"]);
}

TEST_F(ProgramTest, AQuickDemoSaysThatItIsNotAMeasurement) {
  const auto outcome = riffle("demo --quick --set train.max_updates=12 --set model.width=4");
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("Not a measurement"));
  EXPECT_THAT(outcome.out, HasSubstr("MinRed buffer"));
}

}  // namespace
}  // namespace riffle

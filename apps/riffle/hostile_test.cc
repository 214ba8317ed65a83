// The program where its surroundings mean harm, or had a bad day.

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "apps/riffle/testing/process.h"
#include "apps/riffle/testing/program.h"
#include <nlohmann/json.hpp>

#include "riffle/base/text.h"

namespace riffle {
namespace {

using testing::Not;

class HostileTest : public ProgramTest {
 protected:
  // Runs a line of sh in the test's folder, with $RIFFLE for the program. Returns its exit code.
  int shell(const std::string& line) const {
    const std::string command =
        "cd '" + folder_.string() + "' && RIFFLE='" RIFFLE_PROGRAM "' && " + line;
    return WEXITSTATUS(std::system(command.c_str()));
  }
  // Fills a folder with pictures from the buffer of a run.
  void make_photos(const std::string& folder, const std::string& run) const {
    ASSERT_EQ(riffle("-q buffer '" + run + "' --export taken --order newest").exit_code, 0);
    fs::create_directories(folder_ / folder);
    for (const auto& entry : fs::directory_iterator(folder_ / "taken")) {
      if (entry.path().extension() == ".jpg") fs::copy(entry.path(), folder_ / folder);
    }
  }
  static void expect_printable(const Outcome& outcome) {
    for (const auto& line : split(outcome.out + outcome.err, '\n')) {
      EXPECT_EQ(line, printable(line));
      EXPECT_FALSE(line.starts_with("12:00:00 all is well")) << "a name made a line of its own";
    }
  }
  void train(const std::string& run) const {
    const auto trained = riffle("-q train --run " + run + " " + kTiny);
    ASSERT_EQ(trained.exit_code, 0) << trained.err;
  }
};

TEST_F(HostileTest, ClosedStandardStreamsAreNotWrittenIntoTheResult) {
  train("run");
  const std::string embed =
      "$RIFFLE embed run --input 'synthetic:?frames=1&seed=9&size=16' --samples 600 --batch 64 ";
  ASSERT_EQ(shell(embed + "--out open.npy >open.txt 2>&1"), 0);
  for (const std::string closed : {"2>&-", "<&- >&- 2>&-"}) {
    EXPECT_EQ(shell(embed + "--out closed.npy " + closed), 0) << closed;
    EXPECT_EQ(content(folder_ / "closed.npy"), content(folder_ / "open.npy")) << closed;
    EXPECT_EQ(content(folder_ / "closed.csv"), content(folder_ / "open.csv")) << closed;
  }
}

TEST_F(HostileTest, ALogThatNobodyReadsEndsNoRun) {
  EXPECT_EQ(shell("{ $RIFFLE train --run run " + kTiny + " 2>&1; echo $? >code; } | true"), 0);
  EXPECT_EQ(content(folder_ / "code"), "0\n");
  EXPECT_TRUE(fs::exists(folder_ / "run/checkpoints/update-000000020.json"));
}

TEST_F(HostileTest, ALimitOfTheSizeOfFilesIsAFullDisk) {
  EXPECT_EQ(shell("ulimit -f 40 && $RIFFLE train --run run " + kTiny + " 2>err"), 1);
  EXPECT_THAT(content(folder_ / "err"), HasSubstr("could not be written"));
}

TEST_F(HostileTest, NamesOfAnyBytesArePrintedAsTextAndAsJson) {
  const std::string name = "caf\xe9 \x1b[31mred\x7f\xc2\x9b\n12:00:00 all is well";
  const std::string shown = "caf\\xe9 \\x1b[31mred\\x7f\\xc2\\x9b\\x0a12:00:00 all is well";
  train("'" + name + "'");
  make_photos("photos/" + name, name);
  std::ofstream(folder_ / "photos" / name / "broken.png") << "no picture";
  std::ofstream(folder_ / (name + ".yaml")) << R"(title: Tiny
set:
  model: {arch: resnet10, stem: stride2, width: 2}
  augment.size: 16
  buffer.capacity: 16
  train: {batch: 8, max_updates: 4, threads: 1}
  stream.uri: 'folder:{data}/absent'
vary: {mode: {fifo: {title: FIFO, buffer.policy: fifo}}}
probe: {points: 1, sets: {a: {train: 'folder:{data}/a', val: 'folder:{data}/b'}}}
scales: {smoke: {seeds: 1}}
show: [{table: Updates, rows: mode, values: [updates]}]
)";
  const std::string set = "'synthetic:?frames=1&size=16&classes=4&samples=40'";
  const std::string run = " '" + name + "' ", out = " --out 'out/" + name;
  const std::vector<std::string> commands = {
      "stream folder:photos --sheet 'out/" + name + ".png'",
      "config" + run,
      "report" + run,
      "report" + run + out + ".html'",
      "buffer" + run + out + ".html' --export 'out/" + name + "@'",
      "export" + run + out + ".safetensors'",
      "embed" + run + "--input folder:photos" + out + ".npy'",
      "probe" + run + "--trained-only --train " + set + " --val " + set,
      "curate folder:photos --keep 4 --encoder" + run + out + "@.selection'",
      "resume" + run + "--max-updates 2@"};
  int turn = 0;
  for (const std::string& command : commands) {
    for (const std::string json : {"", " --json"}) {
      std::string line = command + json;
      if (const auto at = line.find('@'); at != std::string::npos) {
        line.replace(at, 1, std::to_string(++turn));
      }
      SCOPED_TRACE(line);
      const auto outcome = riffle(line);
      EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
      expect_printable(outcome);
      EXPECT_EQ(nlohmann::json::accept(outcome.out), !json.empty()) << outcome.out;
    }
  }

  const auto text = riffle("stream folder:photos");
  EXPECT_THAT(text.out, HasSubstr(shown));
  EXPECT_THAT(text.err, HasSubstr(shown + "/broken.png"));
  const auto json = riffle("stream folder:photos --json --sheet 'out/" + name + ".png'");
  EXPECT_THAT(nlohmann::json::parse(json.out)["contact_sheet"].get<std::string>(),
              HasSubstr("caf\xef\xbf\xbd \x1b[31mred\x7f\xc2\x9b\n"));

  for (const std::string flag : {"--check", "--dry-run", "--dry-run --json"}) {
    const auto study = riffle("study '" + name + ".yaml' --scale smoke --data '" + name + "' " +
                              flag + " --out 'out/" + name + "'");
    SCOPED_TRACE(flag);
    expect_printable(study);
    EXPECT_EQ(study.exit_code, 0) << study.err;
    EXPECT_THAT(study.out + study.err, HasSubstr(shown + "/absent"));
  }
  const auto absent = riffle("stream 'folder:absent \x1b[31m\nyes'");
  EXPECT_EQ(absent.exit_code, 2);
  EXPECT_THAT(absent.err, HasSubstr("absent \\x1b[31m\\x0ayes"));
}

TEST_F(HostileTest, AStreamInAFolderOfAnyNameIsTrainedOnAndResumed) {
  train("first");
  const std::string name = "caf\xe9: #\x1b";
  make_photos(name, "first");
  const std::string training = std::string(kTiny).replace(
      0, kTiny.find(" --size"), "--shape loop --stream 'folder:" + name + "'");
  const auto trained = riffle("-q train --run run " + training);
  ASSERT_EQ(trained.exit_code, 0) << trained.err;
  EXPECT_EQ(trained.err, "");
  EXPECT_TRUE(fs::exists(folder_ / "run/checkpoints/update-000000020.json"));

  const auto resumed = riffle("-q resume run --max-updates 24");
  EXPECT_EQ(resumed.exit_code, 0) << resumed.err;
  EXPECT_EQ(resumed.err, "");
  EXPECT_TRUE(fs::exists(folder_ / "run/checkpoints/update-000000024.json"));

  const auto kept = riffle("-q buffer run --json --export kept --originals");
  EXPECT_EQ(kept.exit_code, 0) << kept.err;
  const auto found = nlohmann::json::parse(kept.out);
  EXPECT_GT(found["originals"], 0);
  EXPECT_EQ(found["originals"], found["exported"]);
  const auto config = riffle("config run --json");
  EXPECT_EQ(nlohmann::json::parse(config.out)["stream.uri"]["value"], "folder:caf%e9: #%1b");
  const auto again = riffle("-q train --config run/config.yaml --run again");
  EXPECT_EQ(again.exit_code, 0) << again.err;
}

TEST_F(HostileTest, AConfigurationMayComeThroughAPipe) {
  EXPECT_EQ(shell("echo 'run.seed: 7' | $RIFFLE -q train --config /dev/stdin --run run " + kTiny),
            0);
  EXPECT_THAT(content(folder_ / "run/config.yaml"), HasSubstr("seed: 7"));
}

TEST_F(HostileTest, AnotherLibjpegIsNamedBeforeAnythingIsDone) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "nothing can be loaded before a sanitizer";
#endif
  const std::string other = "LD_PRELOAD='" RIFFLE_OTHER_LIBJPEG "'";
  const auto trained = riffle("train --run run " + kTiny, other);
  EXPECT_EQ(trained.exit_code, 1);
  EXPECT_THAT(trained.err, HasSubstr("riffle was built for another libjpeg"));
  EXPECT_FALSE(fs::exists(folder_ / "run"));
  EXPECT_EQ(riffle("--version", other).exit_code, 0);
}

TEST_F(HostileTest, AnAliasThatLoopsIsRefusedByEveryCommandThatReadsYaml) {
  std::ofstream(folder_ / "loop.yaml") << "train: &a {x: *a}\n";
  expect_refused("train --run r --config loop.yaml", "an alias leads back to itself");
  expect_refused("study loop.yaml", "an alias leads back to itself");
  fs::create_directory(folder_ / "run");
  fs::copy(folder_ / "loop.yaml", folder_ / "run/config.yaml");
  for (const char* command : {"config run", "resume run", "report run", "buffer run"}) {
    expect_refused(command, "an alias leads back to itself");
  }
}

}  // namespace
}  // namespace riffle

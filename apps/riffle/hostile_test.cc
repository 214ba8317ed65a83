// The program where its surroundings mean harm, or had a bad day.

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "apps/riffle/testing/process.h"
#include "apps/riffle/testing/program.h"
#include <nlohmann/json.hpp>

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
  const std::string name = "caf\xe9 \x1b[31mred";
  fs::create_directories(folder_ / "photos" / name);
  train("run");
  ASSERT_EQ(riffle("buffer run --export kept --order newest").exit_code, 0);
  for (const auto& entry : fs::directory_iterator(folder_ / "kept")) {
    if (entry.path().extension() == ".jpg") {
      fs::copy(entry.path(), folder_ / "photos" / name / entry.path().filename());
    }
  }
  std::ofstream(folder_ / "photos" / name / "broken.png") << "no picture";

  const auto text = riffle("stream folder:photos");
  EXPECT_EQ(text.exit_code, 0) << text.err;
  EXPECT_THAT(text.out, HasSubstr("caf\\xe9 \\x1b[31mred"));
  EXPECT_THAT(text.err, HasSubstr("caf\\xe9 \\x1b[31mred/broken.png"));
  EXPECT_THAT(text.out + text.err, Not(HasSubstr("\x1b")));

  const auto json = riffle("stream folder:photos --json --sheet 'photos/" + name + "/sheet.png'");
  EXPECT_EQ(json.exit_code, 0) << json.err;
  EXPECT_THAT(nlohmann::json::parse(json.out)["contact_sheet"].get<std::string>(),
              HasSubstr("caf\xef\xbf\xbd"));

  const auto absent = riffle("stream 'folder:absent \x1b[31m'");
  EXPECT_EQ(absent.exit_code, 2);
  EXPECT_THAT(absent.err, HasSubstr("absent \\x1b[31m"));
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

// For tests: the program run as a user runs it, each test in a folder of its own.
#pragma once

#include <algorithm>
#include <array>
#include <cstdio>
#include <filesystem>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>

#include "riffle/base/testing/temp_folder.h"

namespace riffle {

namespace fs = std::filesystem;
using testing::HasSubstr;

struct Outcome {
  int exit_code = -1;
  std::string out;
  std::string err;
};

class ProgramTest : public TempFolder {
 protected:
  // Runs the program in the test's own folder; `launcher` starts it.
  Outcome riffle(const std::string& arguments, const std::string& launcher = "") const {
    const fs::path errors = folder_ / "stderr.txt";
    const std::string command = "cd '" + folder_.string() + "' && " + launcher +
                                " '" RIFFLE_PROGRAM "' " + arguments + " 2>'" + errors.string() +
                                "'";
    Outcome outcome;
    FILE* pipe = popen(command.c_str(), "r");
    std::array<char, 4096> chunk;
    while (const auto got = std::fread(chunk.data(), 1, chunk.size(), pipe))
      outcome.out.append(chunk.data(), got);
    outcome.exit_code = WEXITSTATUS(pclose(pipe));
    FILE* file = std::fopen(errors.c_str(), "r");
    while (const auto got = std::fread(chunk.data(), 1, chunk.size(), file))
      outcome.err.append(chunk.data(), got);
    std::fclose(file);
    return outcome;
  }

  // The complaint is one line on standard error, nothing on standard output.
  void expect_refused(const std::string& arguments, const std::string& words) const {
    const auto outcome = riffle(arguments);
    EXPECT_EQ(outcome.exit_code, 2) << arguments << '\n' << outcome.err;
    EXPECT_THAT(outcome.err, HasSubstr(words)) << arguments;
    EXPECT_EQ(std::count(outcome.err.begin(), outcome.err.end(), '\n'), 1) << outcome.err;
    EXPECT_EQ(outcome.out, "");
  }
};

// A run of seconds.
inline const std::string kTiny =
    "--stream 'synthetic:?frames=8&size=16' --size 16 --arch resnet10 --stem stride2 --width 4 "
    "--batch 8 --capacity 32 --updates 2 --max-updates 20 --set model.projector_out=16 "
    "--set model.predictor_hidden=8 ";

}  // namespace riffle

#include "riffle/base/child_process.h"

#include <csignal>
#include <cstdlib>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>

#include "riffle/base/error.h"

namespace riffle {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::vector<std::string> shell(const std::string& script) { return {"/bin/sh", "-c", script}; }

// Waits until the child has closed its output.
void wait_for_end(ChildProcess& child, std::vector<std::string>& lines) {
  while (!child.ended()) {
    pollfd ready = {child.output(), POLLIN, 0};
    ::poll(&ready, 1, -1);
    for (auto& line : child.lines()) lines.push_back(std::move(line));
  }
}

TEST(ChildProcess, AnswersLineByLine) {
  ChildProcess child(shell("while read line; do echo \"got $line\"; echo more; done"));
  child.write_line("one");
  EXPECT_EQ(child.read_line(), "got one");
  EXPECT_EQ(child.read_line(), "more");
  child.write_line("two");
  EXPECT_EQ(child.read_line(), "got two");
  EXPECT_EQ(child.read_line(), "more");
  child.close_input();
  EXPECT_THROW(child.read_line(), Error);
}

TEST(ChildProcess, LinesAreWholeAndErrorsAreApart) {
  ChildProcess child(shell("echo out; echo wrong >&2; printf unfinished"), ChildErrors::piped);
  std::vector<std::string> lines;
  wait_for_end(child, lines);
  EXPECT_THAT(lines, ElementsAre("out"));
  EXPECT_THAT(child.error_lines(), ElementsAre("wrong"));
}

TEST(ChildProcess, DoesNotInheritWhatItMustNot) {
  ::setenv("RIFFLE_TEST_KEPT", "kept", 1);
  ::setenv("RIFFLE_TEST_LEFT", "left", 1);
  ChildProcess child(shell("echo \"$RIFFLE_TEST_KEPT,$RIFFLE_TEST_LEFT\""), ChildErrors::inherited,
                     {"RIFFLE_TEST_LEFT", "RIFFLE_TEST_UNSET"});
  EXPECT_EQ(child.read_line(), "kept,");
}

TEST(ChildProcess, HowItEndedIsSaid) {
  ChildProcess leaves(shell("exit 3"));
  EXPECT_THROW(leaves.read_line(), Error);
  leaves.write_line("too late");
  EXPECT_EQ(leaves.wait(), "exit code 3");

  ChildProcess killed(shell("echo ready; read line"));
  EXPECT_EQ(killed.read_line(), "ready");
  killed.signal(SIGKILL);
  EXPECT_THAT(killed.wait(), HasSubstr("signal 9"));
}

TEST(ChildProcess, AProgramThatIsNotThereIsNamed) {
  EXPECT_THAT([] { ChildProcess child({"/absent/program"}); },
              testing::ThrowsMessage<Error>(HasSubstr("cannot start /absent/program")));
}

}  // namespace
}  // namespace riffle

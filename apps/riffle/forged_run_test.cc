// Forged run folders through every command that reads one.

#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <map>
#include <string>
#include <vector>

#include "apps/riffle/testing/durability.h"
#include "apps/riffle/testing/forge_run.h"
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>

namespace riffle {
namespace {

using testing::Not;

class ForgedRun : public DurabilityTest {};

// RIFFLE_FORGED_RUNS says how many folders; a few without.
TEST_F(ForgedRun, IsReadOrRefusedByEveryCommand) {
  const char* asked = std::getenv("RIFFLE_FORGED_RUNS");
  const std::uint64_t wanted = asked != nullptr ? std::strtoull(asked, nullptr, 10) : 2;
  constexpr std::int64_t kMostBytes = std::int64_t{2} << 30;
  auto whole = train("whole", {"--max-updates", "6"});
  ASSERT_EQ(whole.ended(kDeadline), 0) << whole.errors();
  const std::string set = "synthetic:?frames=1&size=16&classes=4&samples=40";
  const std::vector<std::vector<std::string>> commands = {
      {"config", "forged"},
      {"report", "forged", "--out", "report.html"},
      {"buffer", "forged", "--out", "buffer.html"},
      {"buffer", "forged", "--export", "exported"},
      {"export", "forged", "--out", "weights.safetensors"},
      {"export", "forged", "--out", "weights.onnx"},
      {"embed", "forged", "--input", set, "--out", "features.npy"},
      {"probe", "forged", "--train", set, "--val", set},
      {"resume", "forged", "--max-updates", "8"}};
  std::map<std::string, int> ends;
  for (std::uint64_t i = 0; i < wanted; ++i) {
    Random random(7, Purpose("forged runs"), i);
    const fs::path forged = folder_ / "forged";
    fs::remove_all(forged);
    fs::remove_all(folder_ / "exported");
    fs::copy(folder_ / "whole", forged, fs::copy_options::recursive);
    std::string how = forge_run(forged, random);
    if (random.chance(0.3f)) how += "; " + forge_run(forged, random);
    for (const auto& command : commands) {
      SCOPED_TRACE(how + ": " + command[0] + " " + command[2 < command.size() ? 2 : 0]);
      Process process(folder_, command);
      const auto status = process.ended(kDeadline);
      ASSERT_TRUE(status) << "hangs";
      EXPECT_TRUE(WIFEXITED(*status)) << "signal " << WTERMSIG(*status) << ' ' << process.errors();
      EXPECT_LE(WEXITSTATUS(*status), 2) << process.errors();
      for (const char* raw : {"unexpected failure", "json.exception", "LibTorch failed", "\x1b"}) {
        EXPECT_THAT(process.errors(), Not(testing::HasSubstr(raw)));
      }
      EXPECT_LT(process.peak_bytes(), kMostBytes);
      ++ends[WEXITSTATUS(*status) == 0 ? "read" : "refused"];
    }
  }
  std::cout << wanted << " forged folders, " << commands.size()
            << " commands each: " << ends["read"] << " read, " << ends["refused"] << " refused\n";
  EXPECT_GT(ends["read"], 0);
  EXPECT_GT(ends["refused"], 0);
}

}  // namespace
}  // namespace riffle

// Commands that touch run folders while one of their allocations fails.

#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <string>
#include <vector>

#include "apps/riffle/testing/durability.h"
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>

#include "riffle/base/random.h"

namespace riffle {
namespace {

class OutOfMemory : public DurabilityTest {
 protected:
  void SetUp() override {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    GTEST_SKIP() << "sanitizers have an allocator of their own";
#endif
  }

  struct End {
    int status = -1;
    std::int64_t allocations = 0;
    std::string errors;
  };

  // Runs a command while its n-th allocation since it opened the run fails; 0: none.
  End run(const std::vector<std::string>& arguments, std::int64_t n) const {
    const fs::path count = folder_ / "count";
    fs::remove(count);
    ::setenv("RIFFLE_FAIL_BELOW", "tried", 1);
    ::setenv("RIFFLE_FAIL_AT", std::to_string(n).c_str(), 1);
    ::setenv("RIFFLE_FAIL_COUNT", count.c_str(), 1);
    ::setenv("LD_PRELOAD", RIFFLE_FAIL_ALLOCATION, 1);
    Process process(folder_, arguments);
    ::unsetenv("LD_PRELOAD");
    const auto status = process.ended(kDeadline);
    EXPECT_TRUE(status) << "hangs after allocation " << n << " failed";
    return {status.value_or(-1), std::atoll(content(count).c_str()), process.errors()};
  }
};

// RIFFLE_FAILED_ALLOCATIONS says how many a command; a few without.
TEST_F(OutOfMemory, NoCommandDamagesARun) {
  const char* asked = std::getenv("RIFFLE_FAILED_ALLOCATIONS");
  const std::uint64_t wanted = asked != nullptr ? std::strtoull(asked, nullptr, 10) : 1;
  const std::vector<std::string> whole_run = {"--max-updates", "12"};
  auto whole = train("whole", whole_run);
  ASSERT_EQ(whole.ended(kDeadline), 0) << whole.errors();
  // A run that was stopped on its way.
  {
    auto begun = train("begun", whole_run);
    wait_for("begun/checkpoints/update-000000003.json", begun);
    begun.signal(SIGKILL);
    begun.ended(kDeadline);
  }
  const fs::path tried = folder_ / "tried";
  const std::string labelled = "synthetic:?frames=1&size=16&classes=4&samples=40";
  const std::vector<std::vector<std::string>> commands = {
      {"resume", "tried"},
      {"report", "tried"},
      {"buffer", "tried", "--export", "exported"},
      {"export", "tried", "--out", "weights.safetensors"},
      {"embed", "tried", "--input", "synthetic:?size=16", "--samples", "20", "--out", "f.npy"},
      {"probe", "tried", "--train", labelled, "--val", labelled}};
  for (const auto& command : commands) {
    const auto begin_again = [&] {
      for (const char* name : {"tried", "exported", "weights.safetensors", "f.npy", "f.csv"}) {
        fs::remove_all(folder_ / name);
      }
      fs::copy(folder_ / "begun", tried, fs::copy_options::recursive);
    };
    begin_again();
    const auto all = run(command, 0);
    ASSERT_EQ(all.status, 0) << command[0] << ": " << all.errors;
    ASSERT_GT(all.allocations, 100) << command[0];
    int errors = 0, unharmed = 0, aborts = 0;
    for (std::uint64_t i = 0; i < wanted; ++i) {
      Random random(6, Purpose("failed allocations"), i);
      // Half of them among the first thousand: that is where files are opened.
      const auto among =
          random.chance(0.5f) ? std::min<std::int64_t>(1000, all.allocations) : all.allocations;
      const auto n = 1 + static_cast<std::int64_t>(random.below(static_cast<std::uint64_t>(among)));
      begin_again();
      const auto end = run(command, n);
      SCOPED_TRACE(command[0] + ", allocation " + std::to_string(n) + ": " + end.errors);
      // Destructors of the JSON library allocate. Where one of these fails, C++ ends the process.
      const bool aborted = WIFSIGNALED(end.status) && WTERMSIG(end.status) == SIGABRT &&
                           end.errors.find("std::bad_alloc") != std::string::npos;
      EXPECT_TRUE(WIFEXITED(end.status) || aborted) << "signal " << WTERMSIG(end.status);
      ++(aborted ? aborts : end.status == 0 ? unharmed : errors);
      auto resumed = resume("tried");
      EXPECT_EQ(resumed.ended(kDeadline), 0) << resumed.errors();
      EXPECT_EQ(resumed.errors().find("set aside"), std::string::npos) << resumed.errors();
      expect_learned_the_same(tried, folder_ / "whole");
    }
    std::cout << command[0] << ": of " << wanted << " failed allocations among " << all.allocations
              << ", " << errors << " ended in an error, " << unharmed << " did no harm and "
              << aborts << " ended the process at once\n";
  }
}

}  // namespace
}  // namespace riffle

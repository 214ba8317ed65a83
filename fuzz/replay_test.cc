// Every input that fuzzing began with, and every one that once was a finding, in seconds and with
// any compiler.

#include <filesystem>

#include "fuzz/targets.h"
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "riffle/base/error.h"
#include "riffle/base/file.h"

namespace riffle::fuzz {
namespace {

namespace fs = std::filesystem;

class Corpus : public testing::TestWithParam<Target> {};

TEST_P(Corpus, IsReadOrRefused) {
  const fs::path folder = fs::path(RIFFLE_SOURCE_DIR) / "fuzz/corpus" / GetParam().name;
  int inputs = 0;
  for (const auto& path : list_folder(folder)) {
    SCOPED_TRACE(path.string());
    EXPECT_NO_THROW(fuzz_one(GetParam(), read_bytes(path)));
    ++inputs;
  }
  EXPECT_GT(inputs, 0) << folder;
}

// So that inputs reach what lies behind the first check: some of every corpus are valid.
TEST_P(Corpus, HoldsAnInputThatIsNotRefused) {
  const fs::path folder = fs::path(RIFFLE_SOURCE_DIR) / "fuzz/corpus" / GetParam().name;
  const auto accepted = [&](const fs::path& path) {
    try {
      GetParam().read(read_bytes(path));
      return true;
    } catch (const Error&) {
      return false;
    }
  };
  const auto inputs = list_folder(folder);
  EXPECT_TRUE(std::ranges::any_of(inputs, accepted)) << folder;
}

INSTANTIATE_TEST_SUITE_P(Fuzz, Corpus, testing::ValuesIn(targets()),
                         [](const auto& target) { return std::string(target.param.name); });

TEST(Targets, AnUnknownNameIsRefusedWithTheKnownOnes) {
  EXPECT_THAT([] { find_target("jpg"); },
              testing::ThrowsMessage<Error>(testing::HasSubstr("they are jpeg, png")));
}

}  // namespace
}  // namespace riffle::fuzz

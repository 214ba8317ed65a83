#include "riffle/study/study_first.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "riffle/base/error.h"
#include "riffle/study/study_runner.h"
#include "riffle/study/testing/studies.h"

namespace riffle {
namespace {

using testing::HasSubstr;
using testing::ThrowsMessage;

class StudyFirst : public StudyTest {
 protected:
  static constexpr const char* kFirst =
      "first: {stream.uri: 'synthetic:?frames=4&size=16&classes=4&seed=5', train.max_updates: 8}\n"
      "vary:";

  Study with_first() const { return tiny("vary:", kFirst); }
};

TEST_F(StudyFirst, AllRunsStartFromOneNetworkThatIsMadeOnce) {
  const Study study = with_first();
  // One run at a time, as by several calls of the program.
  run_study(study, folder_ / "out", {{"seed", {"0"}}, {"mode", {"none"}}});
  const auto weights = folder_ / "out/first.safetensors";
  const auto made = fs::last_write_time(weights);
  const auto outcome = run_study(study, folder_ / "out");
  EXPECT_EQ(outcome.made, 3u);
  EXPECT_EQ(fs::last_write_time(weights), made);
  for (const auto& result : outcome.results) {
    EXPECT_EQ(result->points.front().accuracy.at("made").linear_top1,
              outcome.results[0]->points.front().accuracy.at("made").linear_top1)
        << "before they learned anything of their own, whatever the seed";
    EXPECT_THAT(result->first, HasSubstr("max_updates: 8"));
    EXPECT_THAT(result->config, testing::Not(HasSubstr("first.safetensors")));
  }
  EXPECT_EQ(run_study(study, folder_ / "out").made, 0u);
  // A folder may be moved, and needs no more of the first phase than the weights.
  fs::rename(folder_ / "out", folder_ / "moved");
  fs::remove_all(folder_ / "moved/runs/first");
  fs::remove_all(folder_ / "moved/runs/fifo-seed1");
  EXPECT_EQ(run_study(study, folder_ / "moved").made, 1u);
}

TEST_F(StudyFirst, StartsOthersThanARandomNetwork) {
  const auto with = run_study(with_first(), folder_ / "with", {{"seed", {"0"}}});
  const auto without = run_study(tiny(), folder_ / "without", {{"seed", {"0"}}});
  EXPECT_NE(with.results[0]->values.at("loss"), without.results[0]->values.at("loss"));
  EXPECT_TRUE(without.results[0]->first.empty());
}

TEST_F(StudyFirst, OfOtherSettingsIsRefused) {
  const RunChoice one = {{"seed", {"0"}}, {"mode", {"none"}}};
  run_study(with_first(), folder_ / "out", one);
  std::string other = kFirst;
  other.replace(other.find("seed=5"), 6, "seed=6");
  const Study changed = tiny("vary:", other);
  EXPECT_THAT([&] { run_study(changed, folder_ / "out", one); },
              ThrowsMessage<Error>(HasSubstr("other settings")));
  EXPECT_THAT(
      [&] {
        run_study(changed, folder_ / "out", {{"seed", {"1"}}});
      },
      ThrowsMessage<Error>(HasSubstr("other settings")));
}

TEST_F(StudyFirst, IsNotMadeForRunsThatAreGivenWeights) {
  Study study = with_first();
  run_study(study, folder_ / "out", {{"seed", {"0"}}, {"mode", {"none"}}});
  study.overrides.emplace_back("model.init", (folder_ / "out/first.safetensors").string());
  run_study(study, folder_ / "again", {{"seed", {"0"}}, {"mode", {"none"}}});
  EXPECT_FALSE(fs::exists(folder_ / "again/runs/first"));
}

}  // namespace
}  // namespace riffle

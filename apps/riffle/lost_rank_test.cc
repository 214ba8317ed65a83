// Ranks that die or hang.
#ifdef RIFFLE_MPIRUN
#include <cstdlib>
#include <random>
#include <sstream>

#include "apps/riffle/testing/process.h"
#include "apps/riffle/testing/several_ranks.h"

namespace riffle {
namespace {

std::vector<std::string> words_of(const std::string& text) {
  std::vector<std::string> words;
  std::istringstream in(text);
  for (std::string word; in >> word;) {
    if (word.front() == '\'') word = word.substr(1, word.size() - 2);
    words.push_back(word);
  }
  return words;
}

class LostRank : public SeveralRanks {
 protected:
  // Loses a rank of a run that has a checkpoint by a signal, and continues the run.
  void expect_all_end(int signal, int rank, const std::string& message) {
    ::setenv("RIFFLE_RANK_LIMIT", "3", 1);
    Process run(folder_, words_of("train --run run " + kShared + "--max-updates 1000000"),
                mpirun(2));
    ASSERT_TRUE(run.becomes([&] { return metrics("run").size() > 8; }, 60)) << run.errors();
    ::kill(worker(rank), signal);
    const auto status = run.ended(30);
    ASSERT_TRUE(status) << "still running: " << run.errors();
    EXPECT_NE(*status, 0);
    EXPECT_THAT(run.errors(), HasSubstr(message));
    expect_no_workers();
    const auto last = metrics("run").back()["update"].get<int>();
    const auto resumed = ranks(2, "-q resume run --json --max-updates " + std::to_string(last + 3));
    EXPECT_EQ(resumed.exit_code, 0) << resumed.err;
    EXPECT_EQ(Json::parse(resumed.out)["updates"], last + 3);
  }
};

TEST_F(LostRank, ThatDiedEndsAllAndTheRunContinues) { expect_all_end(SIGKILL, 1, "rank 1"); }

TEST_F(LostRank, ThatHangsIsNamedAndEndsAll) { expect_all_end(SIGSTOP, 1, "rank 1 (process "); }

TEST_F(LostRank, ThatHangsMayBeTheFirst) { expect_all_end(SIGSTOP, 0, "rank 0 (process "); }

TEST_F(LostRank, ThatEncodesForCurateEndsAllAndOneProcessContinues) {
  ASSERT_EQ(riffle("-q train --run run " + kShared + "--max-updates 2").exit_code, 0);
  const std::string endless =
      "curate 'synthetic:?frames=8&size=16&seed=9' --keep 12 --batch 16 --encoder run --out out";
  Process pass(folder_, words_of(endless), mpirun(2));
  ASSERT_TRUE(pass.says("read ", 60)) << pass.errors();
  ::kill(worker(1), SIGKILL);
  const auto status = pass.ended(30);
  ASSERT_TRUE(status) << "still running: " << pass.errors();
  EXPECT_NE(*status, 0);
  expect_no_workers();
  const auto rest = riffle(endless + " --samples 200");
  EXPECT_EQ(rest.exit_code, 0) << rest.err;
  EXPECT_TRUE(fs::exists(folder_ / "out/selection.csv"));
}

class KilledRanks : public SeveralRanks, public testing::WithParamInterface<int> {};
INSTANTIATE_TEST_SUITE_P(All, KilledRanks, testing::Values(2, 4),
                         [](const auto& test) { return std::to_string(test.param); });

// RIFFLE_KILLS says how many; one without.
TEST_P(KilledRanks, ResumeToTheSameEndWhateverTheInstant) {
  constexpr double kDeadline = 120;
  const char* asked = std::getenv("RIFFLE_KILLS");
  const int wanted = asked != nullptr ? std::atoi(asked) : 1;
  const std::string short_run = kShared + "--max-updates 40";
  const auto start = Clock::now();
  ASSERT_EQ(ranks(GetParam(), "-q train --run whole " + short_run).exit_code, 0);
  double span = seconds_since(start);
  const auto expected = metrics("whole");

  std::mt19937 generator(static_cast<unsigned>(wanted));
  std::uniform_real_distribution<double> share(0, 1);
  for (int run = 0, kills = 0; kills < wanted; ++run) {
    const std::string name = "run-" + std::to_string(run);
    for (bool done = false; !done;) {
      const bool begun = fs::exists(folder_ / name / "config.yaml");
      Process process(
          folder_,
          words_of(begun ? "-q resume " + name : "-q train --run " + name + " " + short_run),
          mpirun(GetParam()));
      const auto status = process.ended(kills < wanted ? share(generator) * span : kDeadline);
      if (status) {
        ASSERT_EQ(*status, 0) << process.errors();
        done = true;
        span *= 0.9;
        continue;
      }
      span *= 1.02;
      ASSERT_LT(kills, wanted) << "did not finish in time: " << process.errors();
      const auto all = workers();
      // A kill before there was anything to lose does not count.
      if (!all.empty() && begun) ++kills;
      if (!all.empty()) {
        ::kill(all[static_cast<std::size_t>(share(generator) * 0.999 * std::ssize(all))], SIGKILL);
      } else {
        process.signal(SIGTERM);
      }
      ASSERT_TRUE(process.ended(30)) << process.errors();
      expect_no_workers();
    }
    const auto found = metrics(name);
    ASSERT_EQ(found.size(), expected.size());
    for (std::size_t i = 0; i < found.size(); ++i) ASSERT_EQ(found[i]["loss"], expected[i]["loss"]);
    fs::remove_all(folder_ / name);
  }
}

}  // namespace
}  // namespace riffle
#endif

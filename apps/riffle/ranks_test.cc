// The program started by mpirun as several ranks.
#ifdef RIFFLE_MPIRUN
#include <algorithm>
#include <cctype>
#include <cmath>
#include <cstdlib>
#include <numeric>
#include <random>
#include <sstream>

#include "apps/riffle/testing/process.h"
#include "apps/riffle/testing/program.h"
#include <nlohmann/json.hpp>

#include "riffle/image/codec.h"

namespace riffle {
namespace {

using Json = nlohmann::json;

// As a test may: more ranks than cores, whoever runs it.
std::vector<std::string> mpirun(int ranks) {
  return {RIFFLE_MPIRUN, "-n", std::to_string(ranks), "--oversubscribe", "--bind-to", "none"};
}

class SeveralRanks : public ProgramTest {
 protected:
  SeveralRanks() {
    for (const char* name : {"OMPI_ALLOW_RUN_AS_ROOT", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM",
                             "OMPI_MCA_mpi_yield_when_idle", "OMP_NUM_THREADS"}) {
      ::setenv(name, "1", 1);
    }
    ::setenv("OMPI_MCA_btl_vader_single_copy_mechanism", "none", 1);
  }

  Outcome ranks(int number, const std::string& arguments) const {
    std::string launcher;
    for (const auto& word : mpirun(number)) launcher += word + ' ';
    return riffle(arguments, launcher);
  }

  std::vector<Json> metrics(const std::string& run) const {
    std::vector<Json> lines;
    std::ifstream in(folder_ / run / "metrics.jsonl");
    for (std::string line; std::getline(in, line) && !in.eof();) {  // the last may be half written
      lines.push_back(Json::parse(line));
    }
    return lines;
  }

  // Returns the processes of riffle that work on this test's folder.
  std::vector<pid_t> workers() const {
    std::vector<pid_t> found;
    for (const auto& entry : fs::directory_iterator("/proc")) {
      const pid_t id = std::atoi(entry.path().filename().c_str());
      std::error_code gone;
      if (id <= 0 || fs::read_symlink(entry.path() / "exe", gone) != RIFFLE_PROGRAM) continue;
      if (fs::read_symlink(entry.path() / "cwd", gone) == folder_) found.push_back(id);
    }
    return found;
  }
  // mpirun may end before those that it killed have.
  void expect_no_workers() const {
    for (int tries = 0; tries < 1000 && !workers().empty(); ++tries) {
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    EXPECT_TRUE(workers().empty());
  }
  // In the order of ranks, which is that of starting.
  pid_t worker(int rank) const {
    auto all = workers();
    std::ranges::sort(all);
    return all.at(static_cast<std::size_t>(rank));
  }
};

// 24 is divided by 1, 2, 3 and 4.
const std::string kShared =
    "--stream 'synthetic:?frames=8&size=16' --size 16 --arch resnet10 --stem stride2 --width 4 "
    "--batch 24 --capacity 48 --updates 2 --set model.projector_out=16 --threads 1 "
    "--set model.predictor_hidden=8 --schedule constant --buffer reservoir --set metrics.every=1 "
    "--set checkpoint.every=4 ";

TEST_F(SeveralRanks, TrainWhatOneProcessTrains) {
  const auto one = riffle("-q train --run one " + kShared + "--max-updates 12 --json");
  ASSERT_EQ(one.exit_code, 0) << one.err;
  const auto three = ranks(3, "-q train --run three " + kShared + "--max-updates 12 --json");
  ASSERT_EQ(three.exit_code, 0) << three.err;
  const Json result = Json::parse(three.out);
  EXPECT_EQ(result["updates"], 12);
  EXPECT_EQ(result["samples_seen"], Json::parse(one.out)["samples_seen"]);

  const auto expected = metrics("one"), found = metrics("three");
  ASSERT_EQ(found.size(), expected.size());
  for (std::size_t i = 0; i < found.size(); ++i) {
    const double loss = expected[i]["loss"];
    EXPECT_NEAR(found[i]["loss"], loss, 1e-4 * std::abs(loss));
    for (const char* same : {"samples_seen", "buffer_size", "same_clip_pairs", "evicted_random"}) {
      EXPECT_EQ(found[i].at(same), expected[i].at(same)) << same;
    }
  }
  EXPECT_EQ(riffle("buffer three").exit_code, 0);
}

// Whoever meets a bad picture, all skip it, and so do other ranks that continue.
TEST_F(SeveralRanks, TrainOnAFolderWithBadPicturesWhatOneProcessTrains) {
  fs::create_directories(folder_ / "photos");
  for (int i = 0; i < 100; ++i) {
    Picture picture(16, 16);
    std::iota(picture.rgb.begin(), picture.rgb.end(), static_cast<std::uint8_t>(i));
    const auto png = encode_png(picture);
    const bool bad = i == 0 || i % 40 == 17;
    std::ofstream(folder_ / "photos" / (std::to_string(1000 + i) + ".png"), std::ios::binary)
        .write(reinterpret_cast<const char*>(png.data()), std::ssize(png) / (bad ? 2 : 1));
  }
  const std::string options =
      "--stream folder:photos --shape loop " + kShared.substr(kShared.find("--size"));
  const auto one = riffle("-q train --run one " + options + "--max-updates 12");
  ASSERT_EQ(one.exit_code, 0) << one.err;
  const auto two = ranks(2, "-q train --run shared " + options + "--max-updates 6");
  ASSERT_EQ(two.exit_code, 0) << two.err;
  const auto three = ranks(3, "-q resume shared --max-updates 12");
  ASSERT_EQ(three.exit_code, 0) << three.err;
  const auto expected = metrics("one"), found = metrics("shared");
  ASSERT_EQ(found.size(), expected.size());
  const std::string skipped = "skipped_truncated";
  for (std::size_t i = 0; i < found.size(); ++i) {
    EXPECT_NEAR(found[i]["loss"], expected[i]["loss"], 1e-3);
    EXPECT_EQ(found[i].at("samples_seen"), expected[i].at("samples_seen"));
    EXPECT_EQ(found[i].at(skipped), expected[i].at(skipped));
  }
  EXPECT_GT(expected.back().at(skipped), 3) << "the folder came round";
}

// What a page says, word by word, and the pictures in it.
std::vector<std::string> words_of_page(const fs::path& path) {
  const std::string page = content(path);
  std::vector<std::string> words;
  for (std::size_t at = page.find("<body"); at < page.size();) {
    const std::size_t end = page.find('>', at);
    const std::size_t picture = page.find("data:image", at);
    if (picture < end) words.push_back(page.substr(picture, end - picture));
    at = std::min(page.find('<', end), page.size());
    std::istringstream text(page.substr(end + 1, at - end - 1));
    for (std::string word; text >> word;) words.push_back(word);
  }
  return words;
}

// Numbers may differ by what is rounded.
void expect_same_word(const std::string& found, const std::string& expected) {
  if (found == expected) return;
  const auto number = [](std::string word) {
    constexpr std::string_view kMinus = "\u2212";
    if (word.starts_with(kMinus)) word.replace(0, kMinus.size(), "-");
    std::size_t read = 0;
    const double value = std::stod(word, &read);
    EXPECT_EQ(read, word.size()) << word;
    return value;
  };
  ASSERT_TRUE(std::any_of(found.begin(), found.end(), [](char c) { return std::isdigit(c); }))
      << found << " instead of " << expected;
  EXPECT_NEAR(number(found), number(expected), 1e-3);
}

TEST_F(SeveralRanks, LeaveTheReportOfOneProcess) {
  const std::string options = kShared + "--max-updates 8";
  ASSERT_EQ(riffle("-q train --run one/run " + options).exit_code, 0);
  ASSERT_EQ(ranks(2, "-q train --run two/run " + options).exit_code, 0);
  // But for speed.
  const auto expected = metrics("one/run");
  auto lines = metrics("two/run");
  ASSERT_EQ(lines.size(), expected.size());
  std::ofstream out(folder_ / "two/run/metrics.jsonl");
  for (std::size_t i = 0; i < lines.size(); ++i) {
    for (const char* speed : {"seconds", "updates_per_s", "samples_per_s", "updates_per_batch",
                              "idle_share", "stream_held_share"}) {
      lines[i][speed] = expected[i].at(speed);
    }
    out << lines[i].dump() << '\n';
  }
  out.close();
  for (const char* folder : {"one", "two"}) {
    const auto report = riffle("report run", std::string("cd ") + folder + " &&");
    ASSERT_EQ(report.exit_code, 0) << report.err;
  }
  const auto whole = words_of_page(folder_ / "one/run/report.html");
  const auto shared = words_of_page(folder_ / "two/run/report.html");
  ASSERT_EQ(shared.size(), whole.size());
  EXPECT_GT(whole.size(), 200u);
  for (std::size_t i = 0; i < whole.size(); ++i) expect_same_word(shared[i], whole[i]);
}

TEST_F(SeveralRanks, EmbedWhatOneProcessEmbeds) {
  ASSERT_EQ(riffle("-q train --run run " + kShared + "--max-updates 2").exit_code, 0);
  const std::string pictures = "'synthetic:?frames=1&size=16&seed=9&samples=75' --batch 16 --json ";
  // Of five batches and of three, 2 and 3 ranks have an incomplete last round.
  for (const std::string more : {"", "--samples 41"}) {
    const auto one = riffle("embed run --out one.npy --input " + pictures + more);
    ASSERT_EQ(one.exit_code, 0) << one.err;
    for (const int number : {2, 3}) {
      const auto shared = ranks(number, "embed run --out shared.npy --input " + pictures + more);
      ASSERT_EQ(shared.exit_code, 0) << shared.err;
      EXPECT_TRUE(content(folder_ / "shared.npy") == content(folder_ / "one.npy")) << number;
      EXPECT_TRUE(content(folder_ / "shared.csv") == content(folder_ / "one.csv")) << number;
      EXPECT_EQ(Json::parse(shared.out)["samples"], more.empty() ? 75 : 41) << "said once";
    }
  }
}

TEST_F(SeveralRanks, ProbeWhatOneProcessProbes) {
  ASSERT_EQ(riffle("-q train --run run " + kShared + "--max-updates 2").exit_code, 0);
  const std::string probe =
      "-q probe run --train 'synthetic:?frames=1&size=16&classes=4&seed=11&samples=600' "
      "--val 'synthetic:?frames=1&size=16&classes=4&seed=12&samples=300' --json";
  const auto one = riffle(probe);
  ASSERT_EQ(one.exit_code, 0) << one.err;
  const auto two = ranks(2, probe);
  ASSERT_EQ(two.exit_code, 0) << two.err;
  Json expected = Json::parse(one.out), found = Json::parse(two.out);
  expected.erase("seconds");
  found.erase("seconds");
  EXPECT_EQ(found, expected);
  std::istringstream records(content(folder_ / "run/probes.jsonl"));
  std::vector<std::string> lines;
  for (std::string line; std::getline(records, line);) lines.push_back(line);
  ASSERT_EQ(lines.size(), 2u) << "one of each";
  EXPECT_EQ(Json::parse(lines[0])["linear_top1"], Json::parse(lines[1])["linear_top1"]);
}

TEST_F(SeveralRanks, CurateWhatOneProcessCurates) {
  ASSERT_EQ(riffle("-q train --run run " + kShared + "--max-updates 2").exit_code, 0);
  const std::string curate =
      "curate 'synthetic:?frames=8&size=16&seed=9&samples=200' --keep 12 --batch 16 --encoder run "
      "--assignments --json --out ";
  const auto one = riffle(curate + "one");
  ASSERT_EQ(one.exit_code, 0) << one.err;
  const auto two = ranks(2, curate + "two");
  ASSERT_EQ(two.exit_code, 0) << two.err;
  for (const char* file : {"selection.csv", "selection.html", "assignments.csv"}) {
    EXPECT_TRUE(content(folder_ / "two" / file) == content(folder_ / "one" / file)) << file;
  }
  EXPECT_EQ(Json::parse(two.out)["samples"], 200) << "said once";

  const auto refused = ranks(2, curate + "two");
  EXPECT_EQ(refused.exit_code, 2);
  EXPECT_THAT(refused.err, HasSubstr("holds a finished selection"));
}

TEST_F(SeveralRanks, AreProbedByAProcessAlone) {
  const auto trained = ranks(
      2, "train --run run " + kShared +
             "--max-updates 4 --probe-train 'synthetic:?frames=1&size=16&classes=4&samples=60' "
             "--probe-val 'synthetic:?frames=1&size=16&classes=4&seed=2&samples=40'");
  ASSERT_EQ(trained.exit_code, 0) << trained.err;
  EXPECT_THAT(trained.err, HasSubstr("probe of update 4: linear"));
}

TEST_F(SeveralRanks, ReadStreamsOfTheirOwn) {
  for (const std::string rank : {"0", "1"}) {
    const fs::path photos = folder_ / ("camera-" + rank) / ("seen by " + rank);
    fs::create_directories(photos);
    for (int i = 0; i < 48; ++i) {
      const auto png = encode_png(Picture(16, 16));
      std::ofstream(photos / (std::to_string(i) + ".png"), std::ios::binary)
          .write(reinterpret_cast<const char*>(png.data()), std::ssize(png));
    }
  }
  const std::string shared = kShared.substr(kShared.find("--size"));
  const auto trained = ranks(2, "-q train --run run --stream 'folder:camera-{rank}' " + shared +
                                    "--shape loop --max-updates 4");
  ASSERT_EQ(trained.exit_code, 0) << trained.err;
  const auto buffer = riffle("buffer run --json");
  ASSERT_EQ(buffer.exit_code, 0) << buffer.err;
  const Json labels = Json::parse(buffer.out)["labels"];
  EXPECT_TRUE(labels.contains("seen by 0") && labels.contains("seen by 1")) << labels;
  EXPECT_THAT(content(folder_ / "run/config.yaml"), HasSubstr("camera-{rank}"));

  const auto resumed = ranks(2, "-q resume run --max-updates 6");
  EXPECT_EQ(resumed.exit_code, 0) << resumed.err;
  const auto other = riffle("-q resume run --max-updates 8");
  EXPECT_EQ(other.exit_code, 2) << other.err;
  EXPECT_THAT(other.err, HasSubstr("only as many as before"));
}

TEST_F(SeveralRanks, MeasureThemselves) {
  const std::string options = kShared.substr(0, kShared.find("--schedule"));
  const auto measured =
      ranks(2, "-q bench ranks --rounds 1 --seconds 0.1 --json --buffer reservoir " + options);
  ASSERT_EQ(measured.exit_code, 0) << measured.err;
  const Json result = Json::parse(measured.out);
  EXPECT_EQ(result["ranks"], 2);
  EXPECT_EQ(result["batch"], 24);
  EXPECT_GT(result["images_per_s"], 0);
  EXPECT_GT(result["share_of_ideal"], 0);
  EXPECT_GT(result["bytes_per_update"], result["gradient_bytes"]);
}

TEST_F(SeveralRanks, AreRefusedByCommandsThatDoNotShareTheirWork) {
  const std::string launched = "OMPI_COMM_WORLD_SIZE=2 OMPI_COMM_WORLD_RANK=0";
  for (const std::string command : {"export run --out a.safetensors", "report run", "demo",
                                    "stream synthetic:", "config", "bench minred"}) {
    const auto refused = riffle(command, launched);
    EXPECT_EQ(refused.exit_code, 2) << command;
    EXPECT_THAT(refused.err, HasSubstr("works in one process, and this is one of 2; start it "
                                       "without mpirun or srun"))
        << command;
    EXPECT_EQ(refused.out, "");
  }
  EXPECT_EQ(riffle("export --help", launched).exit_code, 0);
  const auto learning = riffle("curate synthetic: --keep 3 --out a", launched);
  EXPECT_EQ(learning.exit_code, 2);
  EXPECT_THAT(learning.err, HasSubstr("one of 2; give an --encoder"));
  EXPECT_FALSE(fs::exists(folder_ / "a"));
}

TEST_F(SeveralRanks, NeedTheSameOptions) {
  const auto refused =
      ranks(1, "-q train --run run " + kShared +
                   "--lr 0.1 : -n 1 " RIFFLE_PROGRAM " -q train --run run " + kShared + "--lr 0.2");
  EXPECT_EQ(refused.exit_code, 1) << refused.err;
  EXPECT_THAT(refused.err, HasSubstr("the configuration and version of rank 1 differ"));
  EXPECT_FALSE(fs::exists(folder_ / "run"));
}

TEST_F(SeveralRanks, NeedALimitInSeconds) {
  for (const std::string limit : {"abc", "0", "-5"}) {
    const auto refused =
        riffle("train --run run " + kShared, "OMPI_COMM_WORLD_SIZE=2 RIFFLE_RANK_LIMIT=" + limit);
    EXPECT_EQ(refused.exit_code, 2) << limit;
    EXPECT_THAT(refused.err, HasSubstr("RIFFLE_RANK_LIMIT"));
  }
}

TEST_F(SeveralRanks, ContinueBitForBitAsManyAsBefore) {
  ASSERT_EQ(ranks(2, "-q train --run whole " + kShared + "--max-updates 16").exit_code, 0);
  ASSERT_EQ(ranks(2, "-q train --run part " + kShared + "--max-updates 7").exit_code, 0);
  const auto resumed = ranks(2, "-q resume part --max-updates 16");
  ASSERT_EQ(resumed.exit_code, 0) << resumed.err;
  const auto expected = metrics("whole"), found = metrics("part");
  ASSERT_EQ(found.size(), 16u);
  for (std::size_t i = 0; i < found.size(); ++i) {
    EXPECT_EQ(found[i]["loss"], expected[i]["loss"]) << "update " << i + 1;
    EXPECT_EQ(found[i]["std"], expected[i]["std"]);
  }
  // As another number, too: the pictures are divided again.
  for (const int number : {3, 1}) {
    const std::string end = std::to_string(20 + 4 * (3 - number));
    const auto other = number == 1 ? riffle("-q resume part --max-updates " + end)
                                   : ranks(number, "-q resume part --max-updates " + end);
    ASSERT_EQ(other.exit_code, 0) << other.err;
    EXPECT_EQ(metrics("part").back()["update"], std::stoi(end));
    EXPECT_EQ(riffle("buffer part").exit_code, 0);
  }
  const auto after = metrics("part");
  EXPECT_NEAR(after[15]["loss"], after[17]["loss"], 0.5);
}

TEST_F(SeveralRanks, ComplainOnce) {
  const auto refused = ranks(2, "train --run run " + kTiny + "--set train.stream_batch=9");
  EXPECT_EQ(refused.exit_code, 2) << refused.err;
  const std::string words = "riffle: train.stream_batch=9 cannot be divided by 2 ranks\n";
  const auto at = refused.err.find(words);
  ASSERT_NE(at, std::string::npos) << refused.err;
  EXPECT_EQ(refused.err.find(words, at + 1), std::string::npos) << refused.err;
  EXPECT_FALSE(fs::exists(folder_ / "run"));
}

TEST_F(SeveralRanks, AreRefusedWhereTheyDoNotFindOneAnother) {
  const auto refused = riffle("train --run run " + kShared, "OMPI_COMM_WORLD_SIZE=2");
  EXPECT_EQ(refused.exit_code, 2);
  EXPECT_THAT(refused.err, HasSubstr("MPI sees 1"));
}

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

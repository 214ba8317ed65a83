// The program started by mpirun as several ranks.
#ifdef RIFFLE_MPIRUN
#include <algorithm>
#include <cctype>
#include <cmath>
#include <cstdlib>
#include <numeric>
#include <sstream>

#include "apps/riffle/testing/several_ranks.h"

#include "riffle/image/codec.h"

namespace riffle {
namespace {

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

// As where one rank looks for the newest checkpoint of a run just after it was written.
TEST_F(SeveralRanks, OpenTheCheckpointThatTheFirstFinds) {
  ASSERT_EQ(riffle("-q train --run run " + kShared + "--max-updates 4").exit_code, 0);
  fs::copy(folder_ / "run", folder_ / "later", fs::copy_options::recursive);
  ASSERT_EQ(riffle("-q resume later --max-updates 8").exit_code, 0);
  const std::string input = " --input 'synthetic:?frames=1&size=16&samples=80' --batch 16 --out ";
  ASSERT_EQ(riffle("-q embed run" + input + "one.npy").exit_code, 0);
  const auto two = riffle("-q embed run" + input + "two.npy : -n 1 " + RIFFLE_PROGRAM +
                              " -q embed later" + input + "two.npy",
                          std::string(RIFFLE_MPIRUN) + " --oversubscribe --bind-to none -n 1 ");
  ASSERT_EQ(two.exit_code, 0) << two.err;
  EXPECT_EQ(content(folder_ / "two.npy"), content(folder_ / "one.npy"));
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

}  // namespace
}  // namespace riffle
#endif

#include "riffle/stream/shards.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include "riffle/base/error.h"
#include "riffle/base/log.h"
#include "riffle/base/random.h"
#include "riffle/base/text.h"
#include "riffle/image/codec.h"
#include "riffle/stream/shards_made_tar.h"

namespace riffle {
namespace fs = std::filesystem;
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Pair;
using testing::ThrowsMessage;

const std::vector<std::string> kFilters = {"gzip", "bzip2", "xz", "zstd", "lz4"};

std::vector<std::byte> png(int level) {
  Picture made(8, 6);
  std::fill(made.rgb.begin(), made.rgb.end(), static_cast<std::uint8_t>(level));
  return encode_png(made);
}

int level(const Sample& sample) { return sample.picture.rgb.at(0); }

// A folder of its own for each test, gone afterwards.
class Shards : public testing::Test {
 protected:
  void SetUp() override {
    std::string name = (fs::temp_directory_path() / "riffle-shards-XXXXXX").string();
    ASSERT_NE(::mkdtemp(name.data()), nullptr);
    root_ = name;
    set_log_level(LogLevel::quiet);
  }
  void TearDown() override {
    fs::remove_all(root_);
    set_log_level(LogLevel::info);
  }

  void put(const std::string& name, std::span<const std::byte> bytes) {
    std::ofstream out(root_ / name, std::ios::binary);
    out.write(reinterpret_cast<const char*>(bytes.data()),
              static_cast<std::streamsize>(bytes.size()));
    ASSERT_TRUE(out.flush());
  }
  void put(const std::string& name, const MadeTar& tar) { put(name, tar.finished()); }

  std::unique_ptr<Stream> open(const std::string& options = "", const std::string& glob = "*") {
    return open_stream(cat("shards:", encode_percent((root_ / glob).string()), "?", options));
  }
  static std::vector<int> levels(Stream& stream) {
    std::vector<int> all;
    while (const auto sample = stream.next()) all.push_back(level(*sample));
    return all;
  }
  static std::vector<std::string> labels(Stream& stream) {
    std::vector<std::string> all;
    while (const auto sample = stream.next()) all.push_back(sample->label);
    return all;
  }

  // Shards of every sort, sound and damaged, with everything that the position has to get past.
  void put_many() {
    int made = 0;
    for (int shard = 0; shard < 8; ++shard) {
      MadeTar tar;
      for (int i = 0; i < 12; ++i, ++made) {
        const auto name = cat("c", made % 3, "/", i == 5 ? std::string(150, 'n') : "n", i);
        if (i % 5 == 1) tar.add(name + ".cls", cat(made, "\n"));
        if (i % 6 == 4) tar.add_folder(cat("c", made % 3, "/sub/"));
        if (i % 4 == 3) tar.add(cat("../", name, ".jpg"), "x");
        tar.add(name + ".png", i % 7 == 2 ? std::vector<std::byte>(10) : png(made));
        if (i % 5 == 2) tar.add(name + ".second.png", png(made + 100));
        if (i % 5 == 3) tar.add(name + ".json", "no json");
      }
      auto bytes = tar.finished();
      if (shard % 4 == 1) bytes.resize(bytes.size() - 5000);
      if (shard == 2 || shard == 5) bytes = compressed(bytes, shard == 2 ? "gzip" : "zstd");
      if (shard == 5) bytes.resize(bytes.size() * 2 / 3);
      if (shard == 6) bytes.assign(3000, std::byte{'x'});
      put(cat("shard-", shard, ".tar"), bytes);
    }
  }

  fs::path root_;
};

TEST_F(Shards, GiveMembersInTheOrderOfTheArchives) {
  put("b.tar", MadeTar().add("z.png", png(3)).add("a.png", png(4)));
  put("a.tar", MadeTar().add("./cat/1.png", png(1)).add("./dog/2.PNG", png(2)));
  const auto stream = open();
  auto sample = stream->next();
  ASSERT_TRUE(sample);
  EXPECT_EQ(level(*sample), 1);
  EXPECT_EQ(sample->index, 0u);
  EXPECT_EQ(sample->label, "cat");
  EXPECT_EQ(sample->clip, kNoClip);
  EXPECT_EQ(sample->key, (root_ / "a.tar").string() + ":cat/1.png");
  EXPECT_THAT(levels(*stream), ElementsAre(2, 3, 4));
  EXPECT_FALSE(stream->next());
  EXPECT_EQ(open("", "{b,c}.tar")->next()->index, 0u);
}

TEST_F(Shards, AreReadThroughEveryCompression) {
  const auto tar = MadeTar().add("cat/1.png", png(1)).add("dog/2.png", png(2)).finished();
  for (const auto& filter : kFilters) {
    put("a.tar", compressed(tar, filter));  // by content: the name says nothing
    EXPECT_THAT(levels(*open()), ElementsAre(1, 2)) << filter;
  }
}

TEST_F(Shards, LabelsComeFromClsThenJsonThenTheFolder) {
  put("a.tar", MadeTar()
                   .add("x/cat/1.png", png(1))
                   .add("x/2.cls", "17\n")
                   .add("x/2.json", R"({"label": "json"})")
                   .add("x/2.png", png(2))
                   .add("x/3.png", png(3))
                   .add("x/3.json", R"({"a": {"label": 1}, "label": 42, "b": [[]]})")
                   .add("x/4.json", R"({"caption": "no label"})")
                   .add("x/4.png", png(4))
                   .add("5.png", png(5)));
  EXPECT_THAT(labels(*open()), ElementsAre("cat", "17", "42", "x", ""));
  EXPECT_THAT(labels(*open("label=cls")), ElementsAre("", "17", "", "", ""));
  EXPECT_THAT(labels(*open("label=dir")), ElementsAre("cat", "x", "x", "x", ""));
  EXPECT_THAT(labels(*open("label=none")), ElementsAre("", "", "", "", ""));
  const auto captions = open("label=json&json_key=caption");
  EXPECT_THAT(labels(*captions), ElementsAre("", "", "", "no label", ""));
  EXPECT_THAT(captions->skipped(), ElementsAre(Pair("bad label", 2)));
  EXPECT_THAT(open()->skipped(), IsEmpty());
}

TEST_F(Shards, LabelsThatCannotBeReadAreCountedAndTheFolderIsTaken) {
  put("a.tar", MadeTar()
                   .add("c/1.cls", std::string(100'000, 'x'))
                   .add("c/1.png", png(1))
                   .add("c/2.cls", " \n")
                   .add("c/2.png", png(2))
                   .add("c/3.json", std::string(500'000, '['))
                   .add("c/3.png", png(3))
                   .add("c/4.cls", "two\nlines")
                   .add("c/4.png", png(4)));
  const auto stream = open();
  EXPECT_THAT(labels(*stream), ElementsAre("c", "c", "c", "c"));
  EXPECT_THAT(stream->skipped(), ElementsAre(Pair("bad label", 3)));
}

TEST_F(Shards, PicturesUnderOneNameShareItsLabel) {
  put("a.tar", MadeTar()
                   .add("1.left.png", png(1))
                   .add("1.right.png", png(2))
                   .add("1.cls", "both")
                   .add("1.txt", "of no use")
                   .add("2.png", png(3)));
  EXPECT_THAT(labels(*open()), ElementsAre("both", "both", ""));
}

TEST_F(Shards, AnEndlessGroupDoesNotPileUp) {
  MadeTar tar;
  for (int i = 0; i < 2500; ++i) tar.add(cat("same.", i, ".png"), png(i % 200));
  put("a.tar", tar);
  const auto stream = open("threads=1");
  EXPECT_EQ(levels(*stream).size(), 2500u);
}

TEST_F(Shards, HostileMembersAreSkippedAndCountedByReason) {
  put("a.tar", MadeTar()
                   .add("1.png", png(1))
                   .add("../../etc/2.png", png(2))
                   .add("/etc/3.png", png(3))
                   .add("._1.png", "a companion, no picture")
                   .add("a\x1b[31m/4.png", "")
                   .add("5.png", "<html>")
                   .add_header("6.png", MadeTar::octal(0), '2', "")  // a link to nowhere
                   .add("7.png", png(7)));
  const auto stream = open();
  EXPECT_THAT(levels(*stream), ElementsAre(1, 7));
  EXPECT_THAT(stream->skipped(),
              ElementsAre(Pair("empty", 1), Pair("not a picture", 1), Pair("unsafe name", 2)));
}

TEST_F(Shards, ABrokenShardIsLeftAtThatPointAndTheNextGoesOn) {
  const auto one = MadeTar().add("1.png", png(1));
  put("a-negative.tar", MadeTar(one).add_header("n.png", MadeTar::binary(-512), '0', ""));
  put("b-huge.tar",
      MadeTar(one).add_header("h.png", MadeTar::binary(std::int64_t{1} << 62), '0', ""));
  auto noise = MadeTar(one).open_ended();
  noise.resize(noise.size() + 3000, std::byte{'x'});
  put("c-noise.tar", noise);
  auto cut = MadeTar(one).add("2.png", std::string(5000, 'x')).open_ended();
  cut.resize(cut.size() - 2000);
  put("d-cut.tar", cut);
  auto packed = compressed(one.finished(), "gzip");
  packed.resize(60);
  put("e-cut.tar.gz", packed);
  put("f-html.tar", std::vector(2000, std::byte{'<'}));
  put("g-empty.tar", std::span<const std::byte>());
  fs::create_directory(root_ / "h-folder.tar");
  ASSERT_EQ(::mkfifo((root_ / "i-pipe.tar").c_str(), 0600), 0);
  put("j-sound.tar", MadeTar().add("9.png", png(9)));
  const auto stream = open();
  EXPECT_THAT(levels(*stream), ElementsAre(1, 1, 1, 1, 9));
  const auto skipped = stream->skipped();
  EXPECT_EQ(skipped.at("empty shard"), 1);
  EXPECT_EQ(skipped.at("unreadable shard"), 2);
  EXPECT_EQ(skipped.at("too large"), 1);
  EXPECT_EQ(skipped.at("not a tar"), 2);
  EXPECT_EQ(skipped.at("broken shard"), 4);
  std::int64_t all = 0;
  for (const auto& [reason, count] : skipped) all += count;
  EXPECT_EQ(all, 10) << testing::PrintToString(skipped);
}

TEST_F(Shards, AMemberOverTheLimitIsPassedOverUnread) {
  const std::uint64_t size = std::uint64_t{300} << 20;
  const auto head = MadeTar().add_header("1.png", MadeTar::octal(size), '0', "").open_ended();
  put("a.tar", head);
  fs::resize_file(root_ / "a.tar", head.size() + size);  // sparse
  const auto rest = MadeTar().add("2.png", png(2)).finished();
  std::ofstream out(root_ / "a.tar", std::ios::binary | std::ios::app);
  out.write(reinterpret_cast<const char*>(rest.data()), static_cast<std::streamsize>(rest.size()));
  out.close();
  const auto stream = open();
  EXPECT_THAT(levels(*stream), ElementsAre(2));
  EXPECT_THAT(stream->skipped(), ElementsAre(Pair("too large", 1)));
}

TEST_F(Shards, ACompressedShardIsLeftAtAMemberThatWouldTakeHoursToUnpack) {
  put("a.tar.gz",
      compressed(MadeTar()
                     .add("1.png", png(1))
                     .add_header("2.bin", MadeTar::binary(std::int64_t{1} << 42), '0', "")
                     .add("3.png", png(3))
                     .finished(),
                 "gzip"));
  const auto stream = open();
  EXPECT_THAT(levels(*stream), ElementsAre(1));
  EXPECT_THAT(stream->skipped(), ElementsAre(Pair("broken shard", 1)));
}

TEST_F(Shards, WhereNothingCanBeUsedTheStreamSaysSo) {
  put("a.tar", MadeTar().add("1.png", "no picture").add("2.txt", "text"));
  const auto stream = open();
  EXPECT_THAT([&] { stream->next(); },
              ThrowsMessage<Error>(AllOf(HasSubstr(root_.string()), HasSubstr("1 not a picture"))));
}

TEST_F(Shards, APatternWithoutFilesAndUnknownOptionsAreRefused) {
  EXPECT_THAT([&] { open(); }, ThrowsMessage<Error>(HasSubstr(root_.string())));
  EXPECT_THROW(open_stream("shards:"), Error);
  put("a.tar", MadeTar().add("1.png", png(1)));
  EXPECT_THAT([&] { open("oder=name"); }, ThrowsMessage<Error>(HasSubstr("'order'")));
  EXPECT_THAT([&] { open("order=time"); }, ThrowsMessage<Error>(HasSubstr("shuffle")));
}

TEST_F(Shards, ShuffleOrdersShardsByTheSeed) {
  for (int i = 0; i < 20; ++i) put(cat(10 + i, ".tar"), MadeTar().add("1.png", png(i)));
  const auto one = levels(*open("order=shuffle&seed=1"));
  EXPECT_EQ(one, levels(*open("order=shuffle&seed=1&threads=0")));
  EXPECT_NE(one, levels(*open("order=shuffle&seed=2")));
  EXPECT_NE(one, levels(*open()));
  EXPECT_EQ(std::set<int>(one.begin(), one.end()).size(), 20u);
}

TEST_F(Shards, SeekGoesOnAsIfNothingHadHappened) {
  put_many();
  for (const std::string order : {"order=name", "order=shuffle&seed=3"}) {
    // Every place, from streams that decode with different numbers of threads.
    const auto first = open(order + "&threads=2");
    std::vector<std::string> positions = {first->position()};
    std::vector<Sample> samples;
    while (auto sample = first->next()) {
      samples.push_back(std::move(*sample));
      positions.push_back(first->position());
    }
    EXPECT_GT(samples.size(), 60u);
    for (std::uint64_t round = 0; round < 25; ++round) {
      Random random(7, Purpose("seek"), round);
      const auto begin = random.below(positions.size());
      const auto second = open(cat(order, "&threads=", round % 4));
      for (auto left = random.below(10); left > 0; --left) second->next();
      second->seek(positions[begin]);
      EXPECT_EQ(second->position(), positions[begin]);
      for (auto i = begin; i < samples.size(); ++i) {
        const auto sample = second->next();
        ASSERT_TRUE(sample);
        ASSERT_EQ(sample->key, samples[i].key);
        ASSERT_EQ(sample->label, samples[i].label);
        ASSERT_EQ(sample->index, samples[i].index);
        ASSERT_EQ(sample->picture, samples[i].picture);
        ASSERT_EQ(second->position(), positions[i + 1]);
      }
      EXPECT_FALSE(second->next());
      EXPECT_EQ(second->position(), (first->next(), first->position()));
    }
  }
}

TEST_F(Shards, WhatWasSkippedIsCountedOnceHoweverOftenTheStreamIsReopened) {
  put_many();
  const auto whole = open();
  levels(*whole);
  std::map<std::string, std::int64_t> pieces;
  auto stream = open();
  while (stream->next()) {
    for (const auto& [reason, count] : stream->skipped()) pieces[reason] += count;
    const auto position = stream->position();
    stream = open();
    stream->seek(position);
  }
  for (const auto& [reason, count] : stream->skipped()) pieces[reason] += count;
  EXPECT_EQ(pieces, whole->skipped());
}

TEST_F(Shards, APlainTarIsEnteredWithoutReadingWhatLiesBefore) {
  MadeTar tar;
  for (int i = 0; i < 100; ++i) tar.add(cat(i, ".png"), png(i));
  put("a.tar", tar);
  const auto stream = open("threads=0");
  for (int i = 0; i < 90; ++i) stream->next();
  const auto position = stream->position();
  // All headers but the very first block would now be refused.
  std::fstream file(root_ / "a.tar", std::ios::binary | std::ios::in | std::ios::out);
  file.seekp(MadeTar::kBlock);
  file << std::string(MadeTar::kBlock * 2 * 90 - MadeTar::kBlock, 'x');
  file.close();
  const auto second = open();
  second->seek(position);
  EXPECT_THAT(levels(*second), ElementsAre(90, 91, 92, 93, 94, 95, 96, 97, 98, 99));
  EXPECT_THAT(second->skipped(), IsEmpty());
}

TEST_F(Shards, PositionsSurviveShardsAddedAndRemoved) {
  for (int i = 10; i < 20; ++i) {
    put(cat(i, ".tar"), MadeTar().add("1.png", png(i)).add("2.png", png(100 + i)));
  }
  const auto stream = open();
  for (int i = 0; i < 9; ++i) stream->next();  // in the middle of 14.tar
  const auto inside = stream->position();
  put("145.tar", MadeTar().add("1.png", png(50)));
  put("05.tar", MadeTar().add("1.png", png(60)));
  fs::remove(root_ / "16.tar");
  const auto second = open();
  second->seek(inside);
  EXPECT_THAT(levels(*second), ElementsAre(114, 50, 15, 115, 17, 117, 18, 118, 19, 119));
  fs::remove(root_ / "14.tar");
  const auto third = open();
  third->seek(inside);
  EXPECT_THAT(levels(*third), ElementsAre(50, 15, 115, 17, 117, 18, 118, 19, 119));
}

TEST_F(Shards, ATextThatIsNoPositionIsRefusedAndChangesNothing) {
  put("a b.tar", MadeTar().add("1.png", png(1)).add("2.png", png(2)));
  const auto stream = open();
  stream->next();
  const auto position = stream->position();
  for (const char c : position) EXPECT_TRUE(c >= ' ' && c <= '~');
  for (const auto* bad :
       {"", "name", "shuffle 1", "name x", "name -1", "name 1 2", "name 1 0 %zz end",
        "name 1 0 a.tar 5", "name 1 0 a.tar -5 0", "name 1 0 a.tar 5 0 more"}) {
    EXPECT_THROW(stream->seek(bad), Error) << bad;
  }
  EXPECT_EQ(stream->position(), position);
  EXPECT_THAT(levels(*stream), ElementsAre(2));
}

TEST_F(Shards, RealShardsAreReadAndEnteredAnywhere) {
  const fs::path data = fs::path(RIFFLE_SOURCE_DIR) / "../shared/data/tiny-imagenet";
  if (!fs::exists(data)) GTEST_SKIP() << "no shards of Tiny ImageNet at " << data;
  const auto address = cat("shards:", data.string(), "/val-*.tar");
  const auto stream = open_stream(address);
  std::vector<Sample> samples;
  std::string position;
  for (int i = 0; i < 700; ++i) {
    if (i == 400) position = stream->position();
    auto sample = stream->next();
    ASSERT_TRUE(sample);
    EXPECT_EQ(sample->picture.width, 64);
    EXPECT_EQ(sample->label.size(), 9u);
    EXPECT_EQ(sample->label[0], 'n');
    samples.push_back(std::move(*sample));
  }
  EXPECT_THAT(stream->skipped(), IsEmpty());
  const auto second = open_stream(address + "?threads=0");
  second->seek(position);
  for (std::size_t i = 400; i < 700; ++i) {
    const auto sample = second->next();
    ASSERT_TRUE(sample);
    ASSERT_EQ(sample->key, samples[i].key);
    ASSERT_EQ(sample->picture, samples[i].picture);
  }
}

}  // namespace
}  // namespace riffle

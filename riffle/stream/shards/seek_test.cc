// Positions in shards: reading continues after them as if nothing had happened.
#include <filesystem>
#include <fstream>
#include <map>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "riffle/base/error.h"
#include "riffle/base/random.h"
#include "riffle/stream/testing/recording.h"
#include "riffle/stream/testing/shards_folder.h"

namespace riffle {
namespace fs = std::filesystem;
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

class ShardsSeek : public ShardsFolder {
 protected:
  // Shards of every sort, sound and damaged, with everything that the position has to get past.
  void put_many() {
    int count = 0;
    for (int shard = 0; shard < 8; ++shard) {
      GeneratedTar tar;
      for (int i = 0; i < 12; ++i, ++count) {
        const auto name = cat("c", count % 3, "/", i == 5 ? std::string(150, 'n') : "n", i);
        if (i % 5 == 1) tar.add(name + ".cls", cat(count, "\n"));
        if (i % 6 == 4) tar.add_folder(cat("c", count % 3, "/sub/"));
        if (i % 4 == 3) tar.add(cat("../", name, ".jpg"), "x");
        tar.add(name + ".png", i % 7 == 2 ? std::vector<std::byte>(10) : solid_png(count));
        if (i % 5 == 2) tar.add(name + ".second.png", solid_png(count + 100));
        if (i % 5 == 3) tar.add(name + ".json", "no json");
      }
      auto bytes = tar.finished();
      if (shard % 4 == 1) bytes.resize(bytes.size() - 5000);
      if (shard == 2 || shard == 5) bytes = compressed(bytes, shard == 2 ? "gzip" : "zstd");
      if (shard == 5) bytes.resize(bytes.size() * 2 / 3);
      if (shard == 6) bytes.assign(3000, std::byte{'x'});
      put_bytes(cat("shard-", shard, ".tar"), bytes);
    }
  }
};

TEST_F(ShardsSeek, SeekContinuesAsIfNothingHadHappened) {
  put_many();
  for (const std::string order : {"order=name", "order=shuffle&seed=3"}) {
    const Recording recording = record(*open(order + "&threads=2"));
    EXPECT_GT(recording.samples.size(), 60u);
    for (std::uint64_t round = 0; round < 25; ++round) {
      Random random(7, Purpose("seek"), round);
      const auto stream = open(cat(order, "&threads=", round % 4));
      for (auto left = random.below(10); left > 0; --left) stream->next();
      expect_continues(*stream, recording, random.below(recording.positions.size()));
    }
  }
}

TEST_F(ShardsSeek, WhatIsSkippedAddsUp) {
  put("a.tar", GeneratedTar()
                   .add("1.png", solid_png(1))
                   .add("2.png", "no picture")
                   .add("3.png", solid_png(3)));
  for (const std::string threads : {"threads=0", "threads=2"}) {
    expect_skips_add_up(cat("shards:", folder_.string(), "/a.tar?", threads), "not a picture");
  }
}

TEST_F(ShardsSeek, WhatWasSkippedIsCountedOnceHoweverOftenTheStreamIsReopened) {
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

TEST_F(ShardsSeek, APlainTarIsEnteredWithoutReadingWhatLiesBefore) {
  GeneratedTar tar;
  for (int i = 0; i < 100; ++i) tar.add(cat(i, ".png"), solid_png(i));
  put("a.tar", tar);
  const auto stream = open("threads=0");
  for (int i = 0; i < 90; ++i) stream->next();
  const auto position = stream->position();
  // All headers but the very first block would now be refused.
  std::fstream file(folder_ / "a.tar", std::ios::binary | std::ios::in | std::ios::out);
  file.seekp(GeneratedTar::kBlock);
  file << std::string(GeneratedTar::kBlock * 2 * 90 - GeneratedTar::kBlock, 'x');
  file.close();
  const auto second = open();
  second->seek(position);
  EXPECT_THAT(levels(*second), ElementsAre(90, 91, 92, 93, 94, 95, 96, 97, 98, 99));
  EXPECT_THAT(second->skipped(), IsEmpty());
}

TEST_F(ShardsSeek, PositionsSurviveShardsAddedAndRemoved) {
  for (int i = 10; i < 20; ++i) {
    put(cat(i, ".tar"), GeneratedTar().add("1.png", solid_png(i)).add("2.png", solid_png(100 + i)));
  }
  const auto stream = open();
  for (int i = 0; i < 9; ++i) stream->next();  // in the middle of 14.tar
  const auto inside = stream->position();
  put("145.tar", GeneratedTar().add("1.png", solid_png(50)));
  put("05.tar", GeneratedTar().add("1.png", solid_png(60)));
  fs::remove(folder_ / "16.tar");
  const auto second = open();
  second->seek(inside);
  EXPECT_THAT(levels(*second), ElementsAre(114, 50, 15, 115, 17, 117, 18, 118, 19, 119));
  fs::remove(folder_ / "14.tar");
  const auto third = open();
  third->seek(inside);
  EXPECT_THAT(levels(*third), ElementsAre(50, 15, 115, 17, 117, 18, 118, 19, 119));
}

TEST_F(ShardsSeek, ATextThatIsNotAPositionIsRefusedAndChangesNothing) {
  put("a b.tar", GeneratedTar().add("1.png", solid_png(1)).add("2.png", solid_png(2)));
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

TEST_F(ShardsSeek, RealShardsAreReadAndEnteredAnywhere) {
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

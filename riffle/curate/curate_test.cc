#include "riffle/curate/curate.h"

#include <algorithm>
#include <atomic>
#include <cerrno>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "riffle/base/error.h"
#include "riffle/base/file.h"
#include "riffle/base/file_faults.h"
#include "riffle/base/text.h"
#include "riffle/curate/pass_state.h"
#include "riffle/curate/testing/curate_folder.h"
#include "riffle/curate/testing/folder_contents.h"
#include "riffle/stream/libraries.h"
#include "riffle/stream/testing/picture_folder.h"
#include "riffle/tensors/safetensors.h"

namespace riffle {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

using CurateTest = CurateFolder;
using LearningCurateTest = LearningCurateFolder;

TEST_F(CurateTest, LeavesThePicturesAsTheyWereAndSaysWhatTheyStandFor) {
  const auto result = select(config("out"));
  EXPECT_TRUE(result.finished);
  EXPECT_EQ(result.samples, 60);
  EXPECT_EQ(result.kept, 12);

  const auto table = split(read_text(folder_ / "out/selection.csv"), '\n');
  ASSERT_EQ(table.size(), 14u);  // with the head, and the line end
  EXPECT_EQ(table[0], "file,index,clip,label,key,time,seconds,count,share,nearest,alone");
  std::int64_t counted = 0;
  for (std::size_t i = 1; i <= 12; ++i) {
    const auto fields = split(table[i], ',');
    ASSERT_EQ(fields.size(), 11u) << table[i];
    EXPECT_EQ(read_text(folder_ / "out/pictures" / fields[0]), read_text(fields[4]));
    EXPECT_THAT(fields[4], HasSubstr(cat("/", fields[3], "/")));
    EXPECT_EQ(cat(fields[5], fields[6]), "") << "neither live nor a film";
    counted += std::stoll(fields[7]);
  }
  EXPECT_EQ(counted, 60);
  const std::string page = read_text(folder_ / "out/selection.html");
  EXPECT_THAT(page, HasSubstr("12 pictures of 60"));
  EXPECT_THAT(page, HasSubstr("% of the stream"));

  const auto assignments = split(read_text(folder_ / "out/assignments.csv"), '\n');
  EXPECT_EQ(assignments.size(), 60u - 12 + 2);
  const auto selection = read_text(folder_ / "out/selection.csv");
  for (std::size_t i = 1; i + 1 < assignments.size(); ++i) {
    EXPECT_THAT(selection, HasSubstr(split(assignments[i], ',').at(3)));
  }

  const auto again = open_stream(cat("folder:", (folder_ / "out/pictures").string()));
  std::int64_t read = 0;
  while (const auto sample = again->next()) {
    EXPECT_TRUE(sample->label == "day" || sample->label == "night");
    ++read;
  }
  EXPECT_EQ(read, 12);
}

TEST_F(CurateTest, NearDropsCopiesAndNothingElse) {
  auto near = config("out");
  near.keep = 60;
  near.near = 1e-12;
  EXPECT_EQ(select(near).kept, 40);
}

TEST_F(LearningCurateTest, LearnsFromWhatPassesAndKeepsAsManyAsAsked) {
  LearningEncoder encoder(learner());
  const at::Tensor before = encoder.encoder().parameters().front().clone();
  const auto result = curate(config("out"), encoder);
  EXPECT_EQ(result.kept, 12);
  EXPECT_EQ(result.samples, 60);
  // Two of seven whole batches fill the buffer, and the second is learned from already.
  EXPECT_EQ(encoder.updates(), 3 * 6);
  EXPECT_FALSE(encoder.encoder().parameters().front().equal(before));
  EXPECT_TRUE(fs::exists(folder_ / "out/encoder.safetensors"));
}

TEST_F(LearningCurateTest, StoppedByAFailureAnywhereItEndsWithTheSameSelection) {
  for (const bool learns : {false, true}) {
    SCOPED_TRACE(learns);
    const auto select_into = [&](const std::string& out) {
      auto quota = config(out);
      quota.keep = 6;
      quota.per = Quota::label;
      return learns ? select(quota) : CurateTest::select(quota);
    };
    const std::string whole_pass = learns ? "learned" : "whole";
    select_into(whole_pass);
    const auto whole = folder_contents(folder_ / whole_pass);
    int failures = 0;
    for (int failing = 1;; failing += learns ? 83 : 41) {
      std::atomic<int> steps = 0;
      bool failed = false;
      {
        const FileFaults faults([&](FileStep step, const fs::path& path) {
          const bool ours = path.string().find("photos") == std::string::npos;
          const bool counts = ours && step != FileStep::read && step != FileStep::list;
          return FileFault{counts && ++steps == failing ? ENOSPC : 0};
        });
        try {
          select_into("out");
        } catch (const Error&) {
          failed = true;
        }
      }
      if (failed) ++failures;
      if (!fs::exists(folder_ / "out/selection.csv")) {
        EXPECT_TRUE(select_into("out").finished);
      }
      auto left = folder_contents(folder_ / "out");
      left.erase("state.safetensors");  // a failure after the selection was whole may leave them
      left.erase("repeats.log");
      EXPECT_EQ(left, whole) << "step " << failing;
      fs::remove_all(folder_ / "out");
      if (steps < failing) break;
    }
    EXPECT_GT(failures, 3);
  }
}

TEST_F(CurateTest, StoppedBeforeTheFirstPictureItContinues) {
  const auto pass = config("out");
  write_atomically(pass.out / "curate.lock", "");
  const Safetensors state = PassState(pass, *encoder_, nullptr).save(0);
  write_safetensors(pass.out / "state.safetensors", state.tensors, state.metadata);
  EXPECT_EQ(select(pass).samples, 60);
}

TEST_F(CurateTest, ShardsHoldThePicturesAndCanBeRead) {
  for (const Library& library : stream_libraries()) {
    const bool reads_shards = library.name != "libarchive" || !library.version.empty();
    if (!reads_shards) GTEST_SKIP() << "built without libarchive";
  }
  auto shards = config("out");
  shards.shards = "part-%03d.tar";
  shards.shard_size = 5;
  EXPECT_EQ(select(shards).kept, 12);
  EXPECT_FALSE(fs::exists(folder_ / "out/pictures"));
  const auto table = read_text(folder_ / "out/selection.csv");
  const auto stream =
      open_stream(cat("shards:", (folder_ / "out").string(), "/part-*.tar?original=1"));
  std::int64_t read = 0;
  while (const auto sample = stream->next()) {
    const std::string member = sample->key.substr(sample->key.rfind("part-"));
    EXPECT_THAT(table, HasSubstr(member));
    const std::string name = member.substr(member.rfind('-') + 1);
    const auto source = read_bytes(folder_ / "photos" / sample->label / name);
    EXPECT_EQ(*sample->picture.file, source);
    ++read;
  }
  EXPECT_EQ(read, 12);
  EXPECT_TRUE(fs::exists(folder_ / "out/part-002.tar"));
  EXPECT_FALSE(fs::exists(folder_ / "out/part-003.tar"));
}

TEST(ShardPattern, HasOneNumber) {
  for (const char* good : {"part-%06d.tar", "%d.tar", "a%03d"}) {
    EXPECT_TRUE(is_shard_pattern(good)) << good;
  }
  for (const char* bad : {"part.tar", "%s.tar", "%d-%d.tar", "%n%06d.tar", "%12345d.tar", "a/%d"}) {
    EXPECT_FALSE(is_shard_pattern(bad)) << bad;
  }
}

TEST_F(CurateTest, EachLabelOrSourceHasItsQuota) {
  for (const Quota per : {Quota::label, Quota::source}) {
    auto quota = config(per == Quota::label ? "labels" : "sources");
    quota.keep = 4;
    quota.per = per;
    EXPECT_EQ(select(quota).kept, 8);
    for (const char* label : {"day", "night"}) {
      const fs::directory_iterator files(quota.out / "pictures" / label);
      EXPECT_EQ(std::distance(files, {}), 4);
    }
  }
}

TEST(SourceOf, IsAFilmAShardOrAFolder) {
  EXPECT_EQ(source_of("films/a#b.mp4#120"), "films/a#b.mp4");
  EXPECT_EQ(source_of("films/a#1.mp4#120"), "films/a#1.mp4");
  EXPECT_EQ(source_of("rtsp://camera/1#0"), "rtsp://camera/1");
  // What shapes made of a frame or a picture.
  EXPECT_EQ(source_of("films/a.mp4#120 frame 3"), "films/a.mp4");
  EXPECT_EQ(source_of("films/a.mp4#120 frame 3 again 17"), "films/a.mp4");
  EXPECT_EQ(source_of("films/a.mp4#120 still 2"), "films/a.mp4");
  EXPECT_EQ(source_of("photos/cat/1.jpg frame 3"), "photos/cat");
  // Names of pictures with a '#'.
  EXPECT_EQ(source_of("photos/cat/a#b.jpg"), "photos/cat");
  EXPECT_EQ(source_of("photos/cat/a#1.jpg"), "photos/cat");
  EXPECT_EQ(source_of("photos/cat/a #1 b.jpg"), "photos/cat");
  EXPECT_EQ(source_of("photos/cat/a#1 frame 3.jpg"), "photos/cat");
  EXPECT_EQ(source_of("photos/cat#2/1.jpg"), "photos/cat#2");
  EXPECT_EQ(source_of("photos/cat/a#"), "photos/cat");
  EXPECT_EQ(source_of("/data/part-0.tar:cat/a#7 b.jpg"), "/data/part-0.tar");
  EXPECT_EQ(source_of("/data/part-0.tar:cat/1.jpg"), "/data/part-0.tar");
  EXPECT_EQ(source_of("/data/part-0.tgz:cat/1.jpg"), "/data/part-0.tgz");
  EXPECT_EQ(source_of("/data/part-0.tar.zst:cat/1.jpg"), "/data/part-0.tar.zst");
  EXPECT_EQ(source_of("photos/cat/1.jpg"), "photos/cat");
  EXPECT_EQ(source_of(""), "");
}

TEST_F(CurateTest, AListHasNoPictures) {
  auto list = config("out");
  list.pictures = false;
  EXPECT_EQ(select(list).kept, 12);
  EXPECT_FALSE(fs::exists(folder_ / "out/pictures"));
}

TEST_F(CurateTest, WhatStandsAloneCanBeDropped) {
  // Many copies of ten pictures, and two like no other.
  const auto stream = open_stream("synthetic:?frames=1&size=24&classes=4&samples=12&seed=8");
  std::vector<std::vector<std::byte>> files;
  while (auto sample = stream->next()) files.push_back(encode_png(sample->picture));
  for (int i = 0; i < 60; ++i) put_bytes(cat("many/", 100 + i, ".png"), files[i % 10]);
  put_bytes("many/900.png", solid_png(0));
  put_bytes("many/901.png", solid_png(255));
  auto drop = config("out");
  drop.stream = cat("folder:", (folder_ / "many").string());
  drop.alone = Alone::drop;
  const auto result = select(drop);
  EXPECT_EQ(result.kept + result.alone, 12);
  EXPECT_EQ(std::ranges::count_if(fs::recursive_directory_iterator(folder_ / "out/pictures"),
                                  [](const auto& entry) { return entry.is_regular_file(); }),
            result.kept);
}

}  // namespace
}  // namespace riffle

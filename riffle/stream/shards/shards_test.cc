#include "riffle/stream/shards/shards.h"

#include <filesystem>
#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "riffle/base/error.h"
#include "riffle/stream/testing/recording.h"
#include "riffle/stream/testing/shards_folder.h"

namespace riffle {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Pair;
using testing::ThrowsMessage;

class Shards : public ShardsFolder {};

TEST_F(Shards, GiveMembersInTheOrderOfTheArchives) {
  put("b.tar", GeneratedTar().add("z.png", solid_png(3)).add("a.png", solid_png(4)));
  put("a.tar", GeneratedTar().add("./cat/1.png", solid_png(1)).add("./dog/2.PNG", solid_png(2)));
  const auto stream = open();
  auto sample = stream->next();
  ASSERT_TRUE(sample);
  EXPECT_EQ(sample->picture.rgb.at(0), 1);
  EXPECT_EQ(sample->index, 0u);
  EXPECT_EQ(sample->label, "cat");
  EXPECT_EQ(sample->clip, kNoClip);
  EXPECT_EQ(sample->key, (folder_ / "a.tar").string() + ":cat/1.png");
  EXPECT_THAT(levels(*stream), ElementsAre(2, 3, 4));
  EXPECT_FALSE(stream->next());
  EXPECT_EQ(open("", "{b,c}.tar")->next()->index, 0u);
}

TEST_F(Shards, AreReadThroughEveryCompression) {
  const auto tar =
      GeneratedTar().add("cat/1.png", solid_png(1)).add("dog/2.png", solid_png(2)).finished();
  for (const std::string filter : {"gzip", "bzip2", "xz", "zstd", "lz4"}) {
    put_bytes("a.tar", compressed(tar, filter));  // by content: the name says nothing
    EXPECT_THAT(levels(*open()), ElementsAre(1, 2)) << filter;
  }
}

TEST_F(Shards, ShuffleOrdersShardsByTheSeed) {
  for (int i = 0; i < 20; ++i) put(cat(10 + i, ".tar"), GeneratedTar().add("1.png", solid_png(i)));
  const auto one = levels(*open("order=shuffle&seed=1"));
  EXPECT_EQ(one, levels(*open("order=shuffle&seed=1&threads=0")));
  EXPECT_NE(one, levels(*open("order=shuffle&seed=2")));
  EXPECT_NE(one, levels(*open()));
  EXPECT_EQ(std::set<int>(one.begin(), one.end()).size(), 20u);
}

TEST_F(Shards, LabelsComeFromClsThenJsonThenTheFolder) {
  put("a.tar", GeneratedTar()
                   .add("x/cat/1.png", solid_png(1))
                   .add("x/2.cls", "17\n")
                   .add("x/2.json", R"({"label": "json"})")
                   .add("x/2.png", solid_png(2))
                   .add("x/3.png", solid_png(3))
                   .add("x/3.json", R"({"a": {"label": 1}, "label": 42, "b": [[]]})")
                   .add("x/4.json", R"({"caption": "no label"})")
                   .add("x/4.png", solid_png(4))
                   .add("5.png", solid_png(5)));
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
  put("a.tar", GeneratedTar()
                   .add("c/1.cls", std::string(100'000, 'x'))
                   .add("c/1.png", solid_png(1))
                   .add("c/2.cls", " \n")
                   .add("c/2.png", solid_png(2))
                   .add("c/3.json", std::string(500'000, '['))
                   .add("c/3.png", solid_png(3))
                   .add("c/4.cls", "two\nlines")
                   .add("c/4.png", solid_png(4)));
  const auto stream = open();
  EXPECT_THAT(labels(*stream), ElementsAre("c", "c", "c", "c"));
  EXPECT_THAT(stream->skipped(), ElementsAre(Pair("bad label", 3)));
}

TEST_F(Shards, PicturesUnderOneNameShareItsLabel) {
  put("a.tar", GeneratedTar()
                   .add("1.left.png", solid_png(1))
                   .add("1.right.png", solid_png(2))
                   .add("1.cls", "both")
                   .add("1.txt", "of no use")
                   .add("2.png", solid_png(3)));
  EXPECT_THAT(labels(*open()), ElementsAre("both", "both", ""));
}

TEST_F(Shards, HiddenMembersOfAMacDoNotPartALabelFromItsPicture) {
  GeneratedTar tar;
  for (int i = 1; i < 4; ++i) {
    for (const auto* hidden : {"._", ""}) {
      tar.add(cat("./", hidden, i, ".png"), solid_png(i));
    }
    for (const auto* hidden : {"._", ""}) tar.add(cat("./", hidden, i, ".cls"), cat("c", i));
  }
  put("a.tar", tar.add("./._last.png", "x"));
  EXPECT_THAT(labels(*open()), ElementsAre("c1", "c2", "c3"));
  const Recording recording = record(*open());
  EXPECT_THAT(open()->skipped(), IsEmpty());
  for (std::size_t at = 0; at < recording.positions.size(); ++at) {
    expect_continues(*open(), recording, at);
  }
}

TEST_F(Shards, APatternWithoutFilesAndUnknownOptionsAreRefused) {
  EXPECT_THAT([&] { open(); }, ThrowsMessage<Error>(HasSubstr(folder_.string())));
  EXPECT_THROW(open_stream("shards:"), Error);
  put("a.tar", GeneratedTar().add("1.png", solid_png(1)));
  EXPECT_THAT([&] { open("oder=name"); }, ThrowsMessage<Error>(HasSubstr("'order'")));
  EXPECT_THAT([&] { open("order=time"); }, ThrowsMessage<Error>(HasSubstr("shuffle")));
}

TEST_F(Shards, ThatAreAllGoneAreAnErrorNotAnEnd) {
  for (int i = 0; i < 3; ++i) put(cat(i, ".tar"), GeneratedTar().add("1.png", solid_png(i)));
  const auto stream = open("threads=0");
  ASSERT_TRUE(stream->next());
  const auto position = stream->position();
  std::filesystem::remove(folder_ / "1.tar");
  EXPECT_EQ(stream->next()->picture.rgb.at(0), 2) << "one that is gone is skipped";
  EXPECT_EQ(stream->skipped().at("unreadable shard"), 1);
  stream->seek(position);
  std::filesystem::remove(folder_ / "0.tar");
  std::filesystem::remove(folder_ / "2.tar");
  EXPECT_THAT([&] { stream->next(); }, ThrowsMessage<Error>(HasSubstr("are gone")));
  EXPECT_EQ(stream->position(), position);
}

}  // namespace
}  // namespace riffle

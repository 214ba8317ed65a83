#include "riffle/curate/originals.h"

#include <gtest/gtest.h>

#include "riffle/base/text.h"
#include "riffle/image/codec.h"
#include "riffle/stream/testing/picture_folder.h"

namespace riffle {
namespace {

using OriginalsTest = PictureFolder;

TEST_F(OriginalsTest, FilesAreThoseOfTheSourceByteForByte) {
  const auto png = solid_png(40);
  put_bytes("photos/cat/a.png", png);
  const auto stream = open_with_originals(cat("folder:", (folder_ / "photos").string()), "");
  const auto sample = stream->next();
  ASSERT_TRUE(sample && sample->picture.file);
  EXPECT_EQ(*sample->picture.file, png);
  EXPECT_EQ(original_path(*sample, *sample->picture.file), "cat/000000000000-a.png");
}

TEST_F(OriginalsTest, WhatHasNoFileBecomesAJpeg) {
  const auto stream = open_with_originals("synthetic:?frames=2&size=24&samples=3", "");
  const auto sample = stream->next();
  ASSERT_TRUE(sample && sample->picture.file);
  DecodeFailure failure;
  const auto again = decode(*sample->picture.file, {}, failure);
  ASSERT_TRUE(again) << failure.detail;
  EXPECT_EQ(again->width, 24);
  EXPECT_TRUE(original_path(*sample, *sample->picture.file).ends_with(".jpg"));
}

TEST_F(OriginalsTest, WhatAShapeMadeIsNotTheFileItWasMadeFrom) {
  put_bytes("photos/a.png", solid_png(40));
  const auto stream =
      open_with_originals(cat("folder:", (folder_ / "photos").string()), "clips:length=2,size=16");
  const auto sample = stream->next();
  ASSERT_TRUE(sample && sample->picture.file);
  DecodeFailure failure;
  const auto again = decode(*sample->picture.file, {}, failure);
  ASSERT_TRUE(again) << failure.detail;
  EXPECT_EQ(again->width, 16);
}

TEST(OriginalPath, NoNameLeadsOutOfTheFolder) {
  const auto png = solid_png(1);
  const auto path = [&](const std::string& label, const std::string& key) {
    Sample sample;
    sample.index = 7;
    sample.label = label;
    sample.key = key;
    return original_path(sample, png);
  };
  for (const char* label : {"", "cat", "../../etc", "..", "a/b\n\x1b[31m"}) {
    for (const char* key : {"", "a.jpg", "/x/../passwd", "shard.tar:a/b.c.jpg", "\xff.png"}) {
      EXPECT_TRUE(is_original_path(path(label, key), 7)) << path(label, key);
    }
  }
  for (const char* other :
       {"", "000000000008.png", "000000000007", "000000000007.sh", "000000000007x.png",
        "000000000007-.png", "000000000007-a/b.png", "/000000000007.png", "../000000000007.png",
        "./000000000007.png", "a/b/000000000007.png", "a/000000000007-..\n.png"}) {
    EXPECT_FALSE(is_original_path(other, 7)) << other;
  }
  EXPECT_EQ(path("", ""), "000000000007.png");
  EXPECT_EQ(path("../../etc", "/x/../passwd"), "_._.._etc/000000000007-passwd.png");
  EXPECT_EQ(path("..", "shard.tar:a/b.c.jpg"), "_./000000000007-b.c.png");
  EXPECT_EQ(path("a/b\n\x1b[31m", "\xff.png"), "a_b___31m/000000000007-_.png");
  EXPECT_LT(path("", std::string(5000, 'x')).size(), 120u);
}

TEST(Originals, EndWhenTheyAreStopped) {
  const auto stream = open_with_originals("synthetic:?size=16", "");
  EXPECT_TRUE(stream->next());
  stream->stop();
  EXPECT_FALSE(stream->next());
}

}  // namespace
}  // namespace riffle

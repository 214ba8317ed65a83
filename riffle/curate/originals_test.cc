#include "riffle/curate/originals.h"

#include <set>
#include <string>
#include <vector>

#include <gmock/gmock.h>
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

TEST_F(OriginalsTest, FilesAreGivenOnceWhereTheAddressAsksForThemAndOfAStreamThatIsMixedInToo) {
  const auto png = solid_png(40);
  put_bytes("photos/a.png", png);
  put_bytes("a,b/others/b.png", solid_png(200));
  const std::string others = (folder_ / "a,b/others").string();
  const std::string photos = cat("folder:", (folder_ / "photos").string());
  EXPECT_EQ(*open_with_originals(photos + "?original=1", "")->next()->picture.file, png);
  const auto encoded = open_with_originals(photos + "?original=0", "")->next();
  EXPECT_NE(*encoded->picture.file, png) << "a JPEG";

  for (const std::string option : {"", "?order=name"}) {
    const auto mixed = open_with_originals(
        photos, cat("limit:samples=9, mix:folder:", others, option, ",share=0.9"));
    std::vector<std::vector<std::byte>> files;
    while (const auto sample = mixed->next()) files.push_back(*sample->picture.file);
    EXPECT_THAT(files, testing::UnorderedElementsAre(png, solid_png(200)));
  }
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

  const auto exact = open_with_originals("synthetic:?frames=2&size=24", "", Encoding::png)->next();
  const auto same = decode(*exact->picture.file, {}, failure);
  ASSERT_TRUE(same) << failure.detail;
  EXPECT_EQ(same->rgb, exact->picture.rgb);
  EXPECT_TRUE(original_path(*exact, *exact->picture.file).ends_with(".png"));
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
  EXPECT_EQ(path("../../etc", "/x/../passwd"), "_._.._etc-b2d9fe41/000000000007-passwd.png");
  EXPECT_EQ(path("..", "shard.tar:a/b.c.jpg"), "_.-7da1a07b/000000000007-b.c.png");
  EXPECT_EQ(path("a/b\n\x1b[31m", "\xff.png"), "a_b___31m-29acdeae/000000000007-_.png");
  EXPECT_LT(path("", std::string(5000, 'x')).size(), 120u);
}

TEST(OriginalPath, EachLabelHasAFolderOfItsOwn) {
  const std::string long_label(72, 'x');
  std::set<std::string> folders;
  // Those of one line would have the same name on every file system.
  const std::vector<std::string> labels = {"a b",
                                           "a_b",
                                           "a/b",
                                           "a\nb",
                                           "a?b",  //
                                           long_label,
                                           long_label + "1",
                                           long_label + "2",  //
                                           ".hidden",
                                           "_hidden",  //
                                           "\xd1\x8f\xd0\xb1",
                                           "\xd1\x86\xd1\x8b",
                                           "____"};
  for (const std::string& label : labels) {
    Sample sample;
    sample.label = label;
    const std::string path = original_path(sample, {});
    EXPECT_TRUE(is_original_path(path, 0)) << path;
    EXPECT_EQ(original_path(sample, {}), path);
    folders.insert(path.substr(0, path.find('/')));
  }
  EXPECT_EQ(folders.size(), labels.size());
  for (const std::string& same :
       {std::string("a b"), std::string("a_b"), long_label, std::string("\xd1\x8f\xd0\xb1")}) {
    EXPECT_TRUE(folders.contains(same)) << same << " can be a folder, and is read again as a label";
  }
}

TEST(Originals, EndWhenTheyAreStopped) {
  const auto stream = open_with_originals("synthetic:?size=16", "");
  EXPECT_TRUE(stream->next());
  stream->stop();
  EXPECT_FALSE(stream->next());
}

}  // namespace
}  // namespace riffle

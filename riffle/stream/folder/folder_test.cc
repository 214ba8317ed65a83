#include "riffle/stream/folder/folder.h"

#include <chrono>
#include <filesystem>
#include <fstream>
#include <span>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <zlib.h>

#include "riffle/base/error.h"
#include "riffle/base/random.h"
#include "riffle/base/text.h"
#include "riffle/image/codec.h"
#include "riffle/stream/testing/matchers.h"
#include "riffle/stream/testing/picture_folder.h"
#include "riffle/stream/testing/recording.h"

namespace riffle {
namespace fs = std::filesystem;
namespace {

using testing::UnorderedElementsAreArray;

// A PNG whose header is whole, but for the size it claims.
std::vector<std::byte> claiming(std::vector<std::byte> png, std::uint32_t width,
                                std::uint32_t height) {
  constexpr std::size_t kType = 12, kWidth = 16, kHeight = 20, kSum = 29;
  const auto put = [&](std::size_t at, std::uint32_t value) {
    for (std::size_t i = 0; i < 4; ++i) png[at + i] = std::byte(value >> (24 - 8 * i) & 0xff);
  };
  put(kWidth, width);
  put(kHeight, height);
  const auto* const begin = reinterpret_cast<const Bytef*>(png.data() + kType);
  put(kSum, static_cast<std::uint32_t>(::crc32(0, begin, kSum - kType)));
  return png;
}

class Folder : public PictureFolder {
 protected:
  void put(const std::string& path, int level = 100) {
    const bool png = path.ends_with("png") || path.ends_with("PNG");
    put_bytes(path, png ? solid_png(level) : encode_jpeg(solid_picture(level)));
  }
  void put_many(int count) {
    for (int i = 0; i < count; ++i) {
      const std::string name = cat("c", i % 5, "/", i * 7919 % 1000, ".png");
      if (i % 6 == 2) {
        put_text(name, "no picture");
      } else {
        put(name, i % 256);
      }
    }
  }

  std::unique_ptr<Stream> open(const std::string& options = "") {
    return open_stream(cat("folder:", encode_percent(folder_.string()), "?", options));
  }
  std::string relative(const Sample& sample) const {
    return fs::path(sample.key).lexically_relative(folder_).string();
  }
  std::vector<std::string> rest(Stream& stream) const {
    std::vector<std::string> paths;
    while (const auto sample = stream.next()) paths.push_back(relative(*sample));
    return paths;
  }
  std::vector<std::string> all(const std::string& options = "") { return rest(*open(options)); }
};

TEST_F(Folder, GivesPicturesAtAnyDepthByName) {
  for (const auto* path : {"b/2.png", "b/1.JPG", "a/deep/er/x.jpeg", "top.PNG", "a/z.jpg"})
    put(path);
  put_text("b/notes.txt", "no picture");
  put_text("jpg", "no ending");
  put("b/.hidden.jpg");
  put(".thumbnails/x.jpg");
  EXPECT_THAT(all(), ElementsAre("a/deep/er/x.jpeg", "a/z.jpg", "b/1.JPG", "b/2.png", "top.PNG"));
}

TEST_F(Folder, SamplesCarryTheirPictureIndexLabelAndKey) {
  put("cat/inner/1.png", 10);
  put("dog.png", 20);
  const auto stream = open();
  auto sample = stream->next();
  ASSERT_TRUE(sample);
  EXPECT_EQ(sample->picture, solid_picture(10));
  EXPECT_EQ(sample->index, 0u);
  EXPECT_EQ(sample->label, "cat");
  EXPECT_EQ(sample->clip, kNoClip);
  EXPECT_EQ(sample->key, (folder_ / "cat/inner/1.png").string());
  sample = stream->next();
  ASSERT_TRUE(sample);
  EXPECT_EQ(sample->picture, solid_picture(20));
  EXPECT_EQ(sample->index, 1u);
  EXPECT_EQ(sample->label, "");
  EXPECT_FALSE(stream->next());
  EXPECT_FALSE(stream->next());
}

TEST_F(Folder, LabelsCanBeLeftOut) {
  put("cat/1.png");
  EXPECT_EQ(open("label=none")->next()->label, "");
}

TEST_F(Folder, OrderByTimeThenName) {
  using namespace std::chrono_literals;
  const auto now = fs::file_time_type::clock::now();
  for (const auto* path : {"a.png", "b.png", "c.png", "d.png"}) put(path);
  fs::last_write_time(folder_ / "a.png", now - 1h);
  fs::last_write_time(folder_ / "b.png", now - 3h);
  fs::last_write_time(folder_ / "c.png", now - 2h);
  fs::last_write_time(folder_ / "d.png", now - 3h);
  EXPECT_THAT(all("order=time"), ElementsAre("b.png", "d.png", "c.png", "a.png"));
}

TEST_F(Folder, ShuffledOrderIsAPermutationDrawnFromTheSeed) {
  put_many(60);
  const auto by_name = all();
  const auto shuffled = all("order=shuffle&seed=1");
  EXPECT_NE(shuffled, by_name);
  EXPECT_THAT(shuffled, UnorderedElementsAreArray(by_name));
  EXPECT_EQ(shuffled, all("order=shuffle&seed=1"));
  EXPECT_NE(shuffled, all("order=shuffle&seed=2"));
}

TEST_F(Folder, ThreadsChangeNothing) {
  put_many(100);
  const auto alone = open("threads=0"), many = open("threads=5");
  while (true) {
    const auto a = alone->next(), b = many->next();
    ASSERT_EQ(a.has_value(), b.has_value());
    if (!a) break;
    ASSERT_EQ(a->key, b->key);
    ASSERT_EQ(a->picture, b->picture);
    ASSERT_EQ(alone->position(), many->position());
    ASSERT_EQ(alone->skipped(), many->skipped());
  }
}

TEST_F(Folder, SymbolicLinksAreFollowedAndLoopsEnd) {
  put("real/1.png");
  put("real/inner/2.png");
  fs::create_directory_symlink(folder_, folder_ / "real/inner/up");
  fs::create_directory_symlink(folder_ / "real", folder_ / "a-link-to-what-is-there");
  fs::create_directory_symlink("loop", folder_ / "loop");
  fs::create_symlink(folder_ / "real/1.png", folder_ / "file-link.png");
  const fs::path elsewhere = folder_ / ".elsewhere";
  put(".elsewhere/3.png");
  fs::create_directory_symlink(elsewhere, folder_ / "linked");
  EXPECT_THAT(all(),
              ElementsAre("file-link.png", "linked/3.png", "real/1.png", "real/inner/2.png"));
}

TEST_F(Folder, LinksLeadOutOfTheFolderOnlyWhereThatIsAsked) {
  put("photos/1.png");
  put("secret/2.png");
  fs::create_directory_symlink(folder_ / "secret", folder_ / "photos/folder");
  fs::create_directory_symlink("../secret", folder_ / "photos/up");
  fs::create_symlink(folder_ / "secret/2.png", folder_ / "photos/file.png");
  fs::create_directory_symlink(folder_ / "photos", folder_ / "name");
  const auto uri = cat("folder:", folder_.string(), "/name");
  const auto inside = open_stream(uri);
  ASSERT_TRUE(inside->next());
  EXPECT_FALSE(inside->next());
  EXPECT_THAT(inside->skipped(), ElementsAre(Pair("leads out", 1), Pair("unreadable folder", 2)));
  const auto anywhere = open_stream(uri + "?links=anywhere");
  int pictures = 0;
  while (anywhere->next()) ++pictures;
  EXPECT_EQ(pictures, 3) << "each folder once";
  EXPECT_TRUE(anywhere->skipped().empty());
}

TEST_F(Folder, BadFilesAreSkippedAndCountedByReason) {
  put("1.png", 1);
  put_text("2.jpg", "");
  put_text("3.jpg", "<html>404</html>");
  const auto whole = encode_jpeg(solid_picture(4));
  put_bytes("4.jpg", std::span(whole).first(whole.size() / 2));
  fs::create_symlink("nowhere.png", folder_ / "5.png");
  ASSERT_EQ(::mkfifo((folder_ / "6.png").c_str(), 0600), 0);
  fs::create_directory(folder_ / "7.png");
  put_bytes("8.jpg", solid_png(8));  // a PNG under a wrong name is fine
  put("9.png", 9);
  put_bytes("a.png", claiming(solid_png(1), 100'000, 100'000));
  const auto stream = open();
  EXPECT_THAT(rest(*stream), ElementsAre("1.png", "8.jpg", "9.png"));
  EXPECT_THAT(stream->skipped(),
              ElementsAre(Pair("empty", 1), Pair("not a picture", 1), Pair("too large", 1),
                          Pair("truncated", 1), Pair("unreadable", 1)));
}

TEST_F(Folder, WhatIsSkippedAddsUp) {
  put("1.png");
  put_text("2.png", "no picture");
  put("3.png");
  for (const std::string threads : {"threads=0", "threads=2"}) {
    expect_skips_add_up(cat("folder:", folder_.string(), "?", threads), "not a picture");
  }
}

TEST_F(Folder, AFileThatVanishesIsSkipped) {
  put("1.png");
  put("2.png");
  const auto stream = open("threads=0");
  fs::remove(folder_ / "1.png");
  EXPECT_THAT(rest(*stream), ElementsAre("2.png"));
  EXPECT_THAT(stream->skipped(), ElementsAre(Pair("unreadable", 1)));
}

TEST_F(Folder, AHugeFileIsNotReadIntoMemory) {
  put("1.png");
  put_text("2.png", "x");
  fs::resize_file(folder_ / "2.png", std::uintmax_t{1} << 40);  // sparse
  const auto stream = open();
  EXPECT_THAT(rest(*stream), ElementsAre("1.png"));
  EXPECT_THAT(stream->skipped(), ElementsAre(Pair("too large", 1)));
}

TEST_F(Folder, WhereNothingDecodesTheStreamSaysSo) {
  put_text("1.jpg", "<html>");
  put_text("2.png", "");
  const auto stream = open();
  EXPECT_THAT([&] { stream->next(); },
              ThrowsMessage<Error>(AllOf(HasSubstr("none of the 2"), HasSubstr(folder_.string()),
                                         HasSubstr("1 not a picture"))));
}

TEST_F(Folder, MissingAndEmptyFoldersAreRefused) {
  EXPECT_THAT([&] { open(); },
              ThrowsMessage<Error>(AllOf(HasSubstr("no pictures"), HasSubstr(folder_.string()))));
  EXPECT_THAT([] { open_stream("folder:/no/such/folder"); },
              ThrowsMessage<Error>(HasSubstr("/no/such/folder")));
  EXPECT_THROW(open_stream("folder:"), Error);
  put("1.png");
  EXPECT_THROW(open_stream(cat("folder:", (folder_ / "1.png").string())), Error);
  EXPECT_THAT([&] { open("oder=name"); }, ThrowsMessage<Error>(HasSubstr("'order'")));
}

TEST_F(Folder, SizeLetsLargeJpegsBeDecodedSmaller) {
  put_bytes("1.jpg", encode_jpeg(Picture(400, 300)));
  EXPECT_EQ(open()->next()->picture.height, 300);
  EXPECT_EQ(open("size=70")->next()->picture.height, 75);
}

TEST_F(Folder, SeekContinuesAsIfNothingHadHappened) {
  put_many(80);
  for (const std::string order : {"order=name", "order=time", "order=shuffle&seed=3"}) {
    const Recording recording = record(*open(order + "&threads=2"));
    EXPECT_GT(recording.samples.size(), 60u);
    for (std::uint64_t round = 0; round < 12; ++round) {
      Random random(5, Purpose("seek"), round);
      const auto stream = open(order + "&threads=1");
      for (auto left = random.below(10); left > 0; --left) stream->next();
      expect_continues(*stream, recording, random.below(recording.positions.size()));
    }
  }
}

TEST_F(Folder, PositionsSurviveFilesAddedAndRemoved) {
  for (const std::string order : {"order=name", "order=shuffle&seed=3"}) {
    fs::remove_all(folder_);
    for (int i = 10; i < 50; ++i) put(cat(i, ".png"));
    const auto before = all(order);
    const auto stream = open(order);
    for (int i = 0; i < 20; ++i) stream->next();
    const auto position = stream->position();
    for (int i = 50; i < 70; ++i) put(cat(i, ".png"));
    fs::remove(folder_ / before[19]);
    fs::remove(folder_ / before[5]);
    fs::remove(folder_ / before[30]);
    const auto reopened = open(order);
    reopened->seek(position);
    // None of those seen, each of those not yet seen, in the order they had.
    std::vector<std::string> old_ones;
    for (const auto& path : rest(*reopened)) {
      if (path < "50.png") old_ones.push_back(path);
    }
    std::vector<std::string> expected(before.begin() + 20, before.end());
    std::erase(expected, before[30]);
    EXPECT_EQ(old_ones, expected);
  }
}

TEST_F(Folder, PositionsAreOneLineOfPlainTextWhateverThePath) {
  put("a b\n\xff%/1.png");
  put("c/2.png");
  const auto stream = open();
  stream->next();
  for (const char c : stream->position()) EXPECT_TRUE(c >= ' ' && c <= '~');
  const auto second = open();
  second->seek(stream->position());
  EXPECT_THAT(rest(*second), ElementsAre("c/2.png"));
}

TEST_F(Folder, ATextThatIsNotAPositionIsRefusedAndChangesNothing) {
  put("1.png");
  put("2.png");
  const auto stream = open();
  stream->next();
  const auto position = stream->position();
  for (const auto* bad : {"", "name", "time 1", "name x", "name -1", "name 1 2", "name 1 0 %zz",
                          "name 1 zero 1.png", "name 1 0 1.png more"}) {
    EXPECT_THROW(stream->seek(bad), Error) << bad;
  }
  EXPECT_EQ(stream->position(), position);
  EXPECT_THAT(rest(*stream), ElementsAre("2.png"));
  EXPECT_THAT(stream->skipped(), IsEmpty());
}

}  // namespace
}  // namespace riffle

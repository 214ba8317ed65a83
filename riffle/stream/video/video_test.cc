#include "riffle/stream/video/video.h"

#include <filesystem>
#include <set>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "riffle/base/error.h"
#include "riffle/base/file.h"
#include "riffle/base/random.h"
#include "riffle/image/exif.h"
#include "riffle/stream/testing/matchers.h"
#include "riffle/stream/testing/recording.h"
#include "riffle/stream/testing/video_folder.h"

namespace riffle {
namespace fs = std::filesystem;
namespace {

class Video : public VideoFolder {};

TEST_F(Video, FramesComeInOrderWithKeyLabelClipAndIndex) {
  make("cat/a.mp4", {.frames = 30});
  make("dog/b.mp4", {.frames = 20});
  const auto samples = all("*/*.mp4");
  ASSERT_EQ(samples.size(), 50u);
  for (std::size_t i = 0; i < samples.size(); ++i) {
    const bool first = i < 30;
    const int number = static_cast<int>(first ? i : i - 30);
    EXPECT_EQ(shown_number(samples[i].picture), number);
    EXPECT_EQ(samples[i].index, i);
    EXPECT_NEAR(samples[i].seconds, number / 25.0, 1e-6);
    EXPECT_EQ(relative(samples[i]), cat(first ? "cat/a.mp4#" : "dog/b.mp4#", number));
    EXPECT_EQ(samples[i].label, first ? "cat" : "dog");
    EXPECT_EQ(samples[i].clip, samples[first ? 0 : 30].clip);
  }
  EXPECT_NE(samples[0].clip, samples[30].clip);
  EXPECT_EQ(all("cat/a.mp4", "label=none")[0].label, "");
}

TEST_F(Video, EveryFrameOfEveryContainerAndCodec) {
  for (const auto& [name, codec] : {std::pair{"a.mp4", "libx264"},
                                    {"b.mkv", "libx264"},
                                    {"c.ts", "libx264"},
                                    {"d.mov", "mpeg4"},
                                    {"e.avi", "mpeg4"},
                                    {"f.mpg", "mpeg2video"},
                                    {"g.avi", "mjpeg"},
                                    {"h.h264", "libx264"}}) {
    make(name, {.codec = codec, .b_frames = std::string(codec) == "mjpeg" ? 0 : 2});
    EXPECT_EQ(numbers(all(name)), every(1, 50)) << name;
  }
}

TEST_F(Video, FpsStrideAndClip) {
  make("a.mp4", {.frames = 50});
  make("b.mkv", {.frames = 48, .fps = 24});  // times in milliseconds
  EXPECT_EQ(numbers(all("a.mp4", "stride=7")), every(7, 50));
  EXPECT_EQ(numbers(all("a.mp4", "fps=5")), every(5, 50));
  EXPECT_EQ(numbers(all("b.mkv", "fps=12")), every(2, 48));
  EXPECT_EQ(numbers(all("a.mp4", "fps=100")), every(1, 50));
  EXPECT_THAT(numbers(all("a.mp4", "fps=0.5")), ElementsAre(0));
  const auto cut = all("a.mp4", "clip=0.4");
  for (std::size_t i = 1; i < cut.size(); ++i) {
    EXPECT_EQ(cut[i].clip == cut[i - 1].clip, i % 10 != 0) << i;
  }
}

TEST_F(Video, SizeScalesDownButNeverUp) {
  make("a.mp4", {.width = 128, .height = 96, .frames = 3});
  const auto small = all("a.mp4", "size=24")[0].picture;
  EXPECT_EQ(small.width, 32);
  EXPECT_EQ(small.height, 24);
  EXPECT_EQ(all("a.mp4", "size=200")[0].picture.width, 128);
}

TEST_F(Video, ColoursAreThoseOfTheFilm) {
  make("a.mp4", {.frames = 1});
  const auto picture = all("a.mp4")[0].picture;
  // Black and white of the number's blocks, at limited range; below them Y' = 60 + 40, Cb = 123,
  // Cr = 128.
  EXPECT_NEAR(picture.at(4, 4)[0], 0, 6);
  const std::uint8_t* ramp = picture.at(20, 10);
  EXPECT_NEAR(ramp[0], 98, 6);
  EXPECT_NEAR(ramp[1], 100, 6);
  EXPECT_NEAR(ramp[2], 88, 6);
}

TEST_F(Video, TurnedFilmsStandUpright) {
  make("0.mp4", {.frames = 2});
  const auto upright = all("0.mp4")[1].picture;
  for (const auto& [degrees, orientation] : {std::pair{90, 6}, {180, 3}, {270, 8}}) {
    const auto name = cat(degrees, ".mp4");
    make(name, {.frames = 2, .turned = degrees});
    EXPECT_EQ(all(name)[1].picture, turn_upright(upright, orientation)) << degrees;
  }
}

TEST_F(Video, ThreadsChangeNothing) {
  make("a.mp4");
  make("b.ts");
  put_text("c.mp4", "no film");
  make("d.avi", {.codec = "mpeg4", .rough = true});
  auto damaged = read_bytes(path("d.avi"));
  std::fill_n(damaged.begin() + static_cast<std::ptrdiff_t>(damaged.size() / 2), 3000,
              std::byte{0});
  put_bytes("d.avi", damaged);
  for (int i = 0; i < 5; ++i) make(cat("e", i, ".mp4"), {.frames = 1 + 7 * i});
  const auto alone = open("*", "threads=0"), many = open("*", "threads=4");
  while (true) {
    const auto a = alone->next(), b = many->next();
    ASSERT_EQ(a.has_value(), b.has_value());
    if (!a) break;
    expect_same(*a, *b);
    ASSERT_EQ(alone->position(), many->position());
  }
  EXPECT_EQ(alone->skipped(), many->skipped());
}

TEST_F(Video, FoldersAndPatternsNameFilms) {
  for (const auto* name : {"a/1.mp4", "a/deep/2.MKV", "b/3.mp4", ".hidden/4.mp4", "b[1].mp4"}) {
    make(cat(name, ".mkv"), {.frames = 1});
    fs::rename(path(cat(name, ".mkv")), path(name));
  }
  put_text("a/notes.txt", "no film");
  const auto films = [&](const std::string& name, const std::string& options = "") {
    std::vector<std::string> found;
    for (const auto& sample : all(name, options)) found.push_back(relative(sample));
    return found;
  };
  EXPECT_THAT(films(""), ElementsAre("a/1.mp4#0", "a/deep/2.MKV#0", "b/3.mp4#0", "b[1].mp4#0"));
  EXPECT_THAT(films("*/%3F.mp4"), ElementsAre("a/1.mp4#0", "b/3.mp4#0"));
  EXPECT_THAT(films("b[1].mp4"), ElementsAre("b[1].mp4#0"));
  EXPECT_THAT(films("{a,b}/[13].mp4"), ElementsAre("a/1.mp4#0", "b/3.mp4#0"));
}

TEST_F(Video, LinksToFoldersAreFollowedOnce) {
  make("films/1.mkv", {.frames = 1});
  make("elsewhere/2.mkv", {.frames = 1});
  fs::create_directory_symlink(folder_ / "elsewhere", folder_ / "films/linked");
  fs::create_directory_symlink("..", folder_ / "films/linked/again");
  std::vector<std::string> found;
  for (const auto& sample : all("films")) found.push_back(relative(sample));
  EXPECT_THAT(found, ElementsAre("films/1.mkv#0", "films/linked/2.mkv#0"));
}

TEST_F(Video, ShuffledOrderIsDrawnFromTheSeed) {
  for (int i = 0; i < 8; ++i) make(cat(i, ".mp4"), {.frames = 1});
  std::set<std::vector<std::string>> orders;
  for (const auto* options :
       {"", "order=shuffle&seed=1", "order=shuffle&seed=1", "order=shuffle&seed=2"}) {
    std::vector<std::string> keys;
    for (const auto& sample : all("*", options)) keys.push_back(sample.key);
    orders.insert(keys);
    EXPECT_EQ(std::set(keys.begin(), keys.end()).size(), 8u);
  }
  EXPECT_EQ(orders.size(), 3u);
}

TEST_F(Video, WrongAddressesAndOptionsAreRefused) {
  make("a.mp4", {.frames = 1});
  EXPECT_THAT([&] { open("none*.mp4"); }, ThrowsMessage<Error>(HasSubstr("none*.mp4")));
  EXPECT_THROW(open_stream("video:"), Error);
  EXPECT_THAT([&] { open("a.mp4", "stide=2"); }, ThrowsMessage<Error>(HasSubstr("'stride'")));
  EXPECT_THAT([&] { open("a.mp4", "stride=2&fps=1"); }, ThrowsMessage<Error>(HasSubstr("either")));
  EXPECT_THROW(open("a.mp4", "stride=0"), Error);
  EXPECT_THROW(open("a.mp4", "fps=-1"), Error);
}

}  // namespace
}  // namespace riffle

// Positions in films: reading continues after them as if nothing had happened.
#include <algorithm>
#include <filesystem>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "riffle/base/error.h"
#include "riffle/base/file.h"
#include "riffle/base/random.h"
#include "riffle/stream/testing/recording.h"
#include "riffle/stream/testing/video_folder.h"

namespace riffle {
namespace fs = std::filesystem;
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::Pair;

class VideoSeek : public VideoFolder {
 protected:
  static Recording recording(const std::string& uri) { return record(*open_stream(uri)); }
};

TEST_F(VideoSeek, EveryFrameOfEveryContainerCodecAndGroupIsFoundAgain) {
  for (const auto& [ending, codec] : {std::pair{"mp4", "libx264"},
                                      {"mkv", "libx264"},
                                      {"ts", "libx264"},
                                      {"h264", "libx264"},
                                      {"mov", "mpeg4"},
                                      {"avi", "mpeg4"},
                                      {"mpg", "mpeg2video"}}) {
    for (const int b_frames : {0, 2, 3}) {
      for (const bool open_groups : {false, true}) {
        // The last group is a short one, or a key frame alone.
        for (const int frames : {28, 25}) {
          const std::string name = cat("a.", ending);
          make(
              name,
              {.frames = frames, .codec = codec, .b_frames = b_frames, .open_groups = open_groups});
          SCOPED_TRACE(cat(ending, ", ", b_frames, " B frames, ", open_groups ? "open" : "closed",
                           " groups, ", frames, " frames"));
          const Recording expected = recording(uri(name, "threads=0"));
          ASSERT_EQ(numbers(expected.samples), every(1, frames));
          const auto stream = open(name, "threads=0");
          for (std::size_t i = 0; i < expected.positions.size(); ++i) {
            expect_continues(*stream, expected, i, 4);
          }
          EXPECT_THAT(stream->skipped(), IsEmpty());
        }
      }
    }
  }
}

TEST_F(VideoSeek, SeekContinuesAsIfNothingHadHappened) {
  make("1.mp4", {.frames = 60, .key_every = 25});
  make("2.ts", {.frames = 60});
  make("3.mkv", {.frames = 40, .open_groups = true});
  make("4.avi", {.frames = 30, .codec = "mpeg4"});
  make("5.mp4", {.frames = 40, .codec = "mpeg4", .open_groups = true});
  make("6.mpg", {.frames = 30, .codec = "mpeg2video", .open_groups = true});
  make("7.h264", {.frames = 20});
  put_text("8.mp4", "no film");
  std::uint64_t round = 0;
  for (const std::string options :
       {"", "threads=0&size=30", "fps=10&clip=0.7", "stride=3", "threads=2",
        "order=shuffle&seed=3&threads=2", "order=shuffle&seed=4&threads=0&stride=2"}) {
    SCOPED_TRACE(options);
    const Recording expected = recording(uri("*", options));
    const auto& samples = expected.samples;
    ASSERT_GT(samples.size(), 80u);
    for (int times = 0; times < 8; ++times, ++round) {
      Random random(5, Purpose("seek"), round);
      const auto stream = open("*", options);
      for (auto left = random.below(10); left > 0; --left) stream->next();
      expect_continues(*stream, expected, random.below(samples.size() + 1), 40);
    }
    // From the end of each film into the one that follows.
    const auto film = [&](std::size_t i) {
      return samples[i].key.substr(0, samples[i].key.find('#'));
    };
    const auto stream = open("*", options);
    for (std::size_t i = 0; i < samples.size(); ++i) {
      const std::size_t soon = std::min(i + 3, samples.size() - 1);
      if (film(i) != film(soon) || i == soon) expect_continues(*stream, expected, i, 5);
    }
  }
}

TEST_F(VideoSeek, AFilmCutShorterThanThePositionIsCountedAndTheNextOneFollows) {
  for (const auto* name : {"1.mp4", "1.mkv", "1.h264"}) {
    fs::remove_all(folder_);
    make(name, {.frames = 40});
    make("2.mp4", {.frames = 3});
    const Recording expected = recording(uri("*"));
    make(name, {.frames = 30});
    for (const std::size_t past : {31, 35, 40}) {
      const auto stream = open("*");
      stream->seek(expected.positions[past]);
      EXPECT_EQ(numbers(rest(*stream)), every(1, 3)) << name << ' ' << past;
      EXPECT_THAT(stream->skipped(), ElementsAre(Pair("shorter than before", 1)));
    }
  }
}

TEST_F(VideoSeek, SeekDoesNotReadWhatLiesBefore) {
  for (const auto* name : {"a.mp4", "a.mkv", "a.ts"}) {
    make(name, {.frames = 200, .rough = true});
    const auto expected = all(name);
    const auto stream = open(name);
    for (int i = 0; i < 150; ++i) stream->next();
    // Frames 50 to 100 or so are overwritten; whoever reads them would stumble.
    auto bytes = read_bytes(path(name));
    std::fill(bytes.begin() + static_cast<std::ptrdiff_t>(bytes.size() / 4),
              bytes.begin() + static_cast<std::ptrdiff_t>(bytes.size() / 2), std::byte{0});
    put_bytes(name, bytes);
    const auto again = open(name);
    again->seek(stream->position());
    for (std::size_t i = 150; i < 200; ++i) {
      const auto sample = again->next();
      ASSERT_TRUE(sample) << name;
      expect_same(*sample, expected[i]);
    }
    EXPECT_THAT(again->skipped(), IsEmpty()) << name;
  }
}

TEST_F(VideoSeek, PositionsSurviveFilmsAddedAndRemoved) {
  for (const std::string order : {"order=name", "order=shuffle&seed=2"}) {
    fs::remove_all(folder_);
    for (const auto* name : {"b.mp4", "c.mp4", "d.mp4"}) make(name, {.frames = 5});
    const auto before = all("*", order);
    const auto stream = open("*", order);
    for (int i = 0; i < 7; ++i) stream->next();
    fs::remove(before[0].key.substr(0, before[0].key.find('#')));
    make("a.mp4", {.frames = 5});
    const auto again = open("*", order);
    again->seek(stream->position());
    std::vector<std::string> keys, expected;
    for (const auto& sample : rest(*again)) {
      if (!relative(sample).starts_with("a.mp4")) keys.push_back(sample.key);
    }
    for (std::size_t i = 7; i < before.size(); ++i) expected.push_back(before[i].key);
    EXPECT_EQ(keys, expected);
  }
}

TEST_F(VideoSeek, ATextThatIsNotAPositionIsRefusedAndChangesNothing) {
  make("a.mp4", {.frames = 6});
  const auto stream = open("a.mp4");
  stream->next();
  const auto position = stream->position();
  for (const auto* bad :
       {"", "name", "shuffle 1", "live 1", "name x", "name -1", "name 1 a.mp4", "name 1 a 0 0 x",
        "name 1 a -1 0 0", "name 1 a 0 zero 0", "name 1 %zz 0 0 0", "name 1 a 0 0 0 0"}) {
    EXPECT_THROW(stream->seek(bad), Error) << bad;
  }
  EXPECT_EQ(stream->position(), position);
  EXPECT_THAT(numbers(rest(*stream)), ElementsAre(1, 2, 3, 4, 5));
}

TEST_F(VideoSeek, WhatIsSkippedAddsUp) {
  make("1.mp4", {.frames = 5});
  put_text("2.mp4", "no film");
  make("3.mp4", {.frames = 5});
  for (const std::string threads : {"threads=0", "threads=2"}) {
    expect_skips_add_up(uri("*", threads), "not a video");
  }
}

TEST_F(VideoSeek, RealFilmsComeWholeAndAreFoundAgain) {
  const std::string folder = RIFFLE_SOURCE_DIR "/../shared/data/ucf101_10/Archery";
  if (!fs::exists(folder)) GTEST_SKIP() << "no films in " << folder;
  const std::string films =
      cat("video:", encode_percent(folder), "/v_Archery_g0[12]_*.mp4?threads=2");
  const Recording expected = recording(films);
  const auto& samples = expected.samples;
  ASSERT_GT(samples.size(), 300u);
  const auto stream = open_stream(films);
  for (std::uint64_t round = 0; round < 6; ++round) {
    Random random(7, Purpose("seek in real films"), round);
    expect_continues(*stream, expected, random.below(samples.size() - 20), 20);
  }
  for (std::size_t i = 3; i < samples.size(); ++i) {
    EXPECT_EQ(samples[i].label, "Archery");
    if (samples[i].clip != samples[i - 1].clip) {
      for (std::size_t before : {1, 2, 3}) expect_continues(*stream, expected, i - before, 5);
    }
  }
  EXPECT_THAT(stream->skipped(), IsEmpty());
}

}  // namespace
}  // namespace riffle

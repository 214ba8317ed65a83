#include "riffle/stream/video.h"

#include <filesystem>
#include <set>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "riffle/base/error.h"
#include "riffle/base/random.h"
#include "riffle/image/exif.h"
#include "riffle/stream/video_folder.h"

namespace riffle {
namespace fs = std::filesystem;
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Pair;
using testing::ThrowsMessage;

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
  put("c.mp4", "no film");
  make("d.avi", {.codec = "mpeg4", .rough = true});
  auto damaged = read_bytes(path("d.avi"));
  std::fill_n(damaged.begin() + static_cast<std::ptrdiff_t>(damaged.size() / 2), 3000,
              std::byte{0});
  put("d.avi", damaged);
  for (int i = 0; i < 5; ++i) make(cat("e", i, ".mp4"), {.frames = 1 + 7 * i});
  const auto alone = open("*", "threads=0"), many = open("*", "threads=4");
  while (true) {
    const auto a = alone->next(), b = many->next();
    ASSERT_EQ(a.has_value(), b.has_value());
    if (!a) break;
    expect_same_frame(*a, *b);
    ASSERT_EQ(alone->position(), many->position());
  }
  EXPECT_EQ(alone->skipped(), many->skipped());
}

TEST_F(Video, SeekGoesOnAsIfNothingHadHappened) {
  make("1.mp4", {.frames = 60, .key_every = 25});
  make("2.ts", {.frames = 60});
  make("3.mkv", {.frames = 40, .open_groups = true});
  make("4.avi", {.frames = 30, .codec = "mpeg4"});
  make("5.mp4", {.frames = 40, .codec = "mpeg4", .open_groups = true});
  make("6.mpg", {.frames = 30, .codec = "mpeg2video", .open_groups = true});
  make("7.h264", {.frames = 20});
  put("8.mp4", "no film");
  std::uint64_t round = 0;
  for (const std::string options :
       {"", "threads=0&size=30", "fps=10&clip=0.7", "stride=3", "threads=2"}) {
    const auto expected = all("*", options);
    ASSERT_GT(expected.size(), 80u);
    for (int times = 0; times < 14; ++times, ++round) {
      Random random(5, Purpose("seek"), round);
      const auto before = random.below(expected.size() + 1);
      const auto first = open("*", options);
      for (auto left = before; left > 0; --left) first->next();
      const std::string position = first->position();
      const auto second = open("*", options);
      for (auto left = random.below(10); left > 0; --left) second->next();
      second->seek(position);
      EXPECT_EQ(second->position(), position);
      for (auto i = before; i < std::min(before + 40, expected.size()); ++i) {
        const auto sample = second->next();
        ASSERT_TRUE(sample) << position;
        expect_same_frame(*sample, expected[i]);
      }
      if (before + 40 >= expected.size()) {
        EXPECT_FALSE(second->next());
      }
    }
  }
}

TEST_F(Video, EveryPlaceInAFilmWithBFramesIsFoundAgain) {
  make("a.mp4", {.frames = 40, .b_frames = 3, .key_every = 10});
  const auto expected = all("a.mp4");
  const auto reader = open("a.mp4");
  const auto seeker = open("a.mp4", "threads=0");
  for (std::size_t i = 0; i + 1 < expected.size(); ++i) {
    reader->next();
    seeker->seek(reader->position());
    const auto sample = seeker->next();
    ASSERT_TRUE(sample);
    expect_same_frame(*sample, expected[i + 1]);
  }
}

TEST_F(Video, SeekDoesNotReadWhatLiesBefore) {
  for (const auto* name : {"a.mp4", "a.mkv", "a.ts"}) {
    make(name, {.frames = 200, .rough = true});
    const auto expected = all(name);
    const auto stream = open(name);
    for (int i = 0; i < 150; ++i) stream->next();
    // Frames 50 to 100 or so are overwritten; whoever reads them would stumble.
    auto bytes = read_bytes(path(name));
    std::fill(bytes.begin() + static_cast<std::ptrdiff_t>(bytes.size() / 4),
              bytes.begin() + static_cast<std::ptrdiff_t>(bytes.size() / 2), std::byte{0});
    put(name, bytes);
    const auto again = open(name);
    again->seek(stream->position());
    for (std::size_t i = 150; i < 200; ++i) {
      const auto sample = again->next();
      ASSERT_TRUE(sample) << name;
      expect_same_frame(*sample, expected[i]);
    }
    EXPECT_THAT(again->skipped(), IsEmpty()) << name;
  }
}

TEST_F(Video, PositionsSurviveFilmsAddedAndRemoved) {
  for (const std::string order : {"order=name", "order=shuffle&seed=2"}) {
    fs::remove_all(root_);
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

TEST_F(Video, ATextThatIsNoPositionIsRefusedAndChangesNothing) {
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

TEST_F(Video, FoldersAndPatternsNameFilms) {
  for (const auto* name : {"a/1.mp4", "a/deep/2.MKV", "b/3.mp4", ".hidden/4.mp4", "b[1].mp4"}) {
    make(cat(name, ".mkv"), {.frames = 1});
    fs::rename(path(cat(name, ".mkv")), path(name));
  }
  put("a/notes.txt", "no film");
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

TEST_F(Video, RealFilmsComeWholeAndAreFoundAgain) {
  const std::string folder = RIFFLE_SOURCE_DIR "/../shared/data/ucf101_10/Archery";
  if (!fs::exists(folder)) GTEST_SKIP() << "no films in " << folder;
  const std::string uri =
      cat("video:", encode_percent(folder), "/v_Archery_g0[12]_*.mp4?threads=2");
  const auto stream = open_stream(uri);
  const auto expected = rest(*stream);
  EXPECT_THAT(stream->skipped(), IsEmpty());
  ASSERT_GT(expected.size(), 300u);
  for (std::uint64_t round = 0; round < 6; ++round) {
    Random random(7, Purpose("seek in real films"), round);
    const auto before = random.below(expected.size() - 20);
    const auto first = open_stream(uri);
    for (auto left = before; left > 0; --left) first->next();
    const auto second = open_stream(uri);
    second->seek(first->position());
    for (auto i = before; i < before + 20; ++i) {
      const auto sample = second->next();
      ASSERT_TRUE(sample);
      EXPECT_EQ(sample->label, "Archery");
      expect_same_frame(*sample, expected[i]);
    }
  }
}

}  // namespace
}  // namespace riffle

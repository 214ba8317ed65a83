// Films that are empty, cut off, damaged, mislabelled or hostile: skipped or cut, counted, never
// more.
#include "riffle/base/testing/damage.h"

#include <array>
#include <filesystem>
#include <map>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "riffle/base/error.h"
#include "riffle/base/file.h"
#include "riffle/stream/testing/loopback_server.h"
#include "riffle/stream/testing/video_folder.h"
#include "riffle/stream/video/film.h"

namespace riffle {
namespace fs = std::filesystem;
namespace {

using testing::AllOf;
using testing::AnyOf;
using testing::ElementsAre;
using testing::Gt;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Lt;
using testing::Pair;
using testing::ThrowsMessage;

class VideoDamage : public VideoFolder {
 protected:
  // A second of silence.
  static std::string sound() {
    const auto little = [](std::uint32_t value, int bytes) {
      std::string text;
      for (int i = 0; i < bytes; ++i) text += static_cast<char>(value >> (8 * i) & 0xff);
      return text;
    };
    return "RIFF" + little(36 + 8000, 4) + "WAVEfmt " + little(16, 4) + little(1, 2) +
           little(1, 2) + little(8000, 4) + little(8000, 4) + little(1, 2) + little(8, 2) + "data" +
           little(8000, 4) + std::string(8000, '\x80');
  }
  std::string bytes_of(const std::string& name) const {
    const auto bytes = read_bytes(path(name));
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
  }
};

TEST_F(VideoDamage, BadFilmsAreSkippedByReasonAndTheRestFollows) {
  make("1.mp4", {.frames = 3});
  put_text("2.mp4", "");
  put_text("3.mp4", "<html><body>404 not found</body></html>");
  put_text("4.mp4", sound());
  put_text("5.mp4", "YUV4MPEG2 W9000 H9000 F25:1 C420\nFRAME\n");
  fs::create_symlink("nowhere", folder_ / "6.mp4");
  fs::create_directory(folder_ / "7.mp4");
  make("8.mp4", {.frames = 3});
  ASSERT_EQ(::mkfifo((folder_ / "9.mp4").c_str(), 0600), 0);  // nobody writes to it
  fs::create_symlink("/dev/zero", folder_ / "a.mp4");
  testing::internal::CaptureStderr();
  const auto stream = open("*.mp4");
  const auto samples = rest(*stream);
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
  ASSERT_EQ(samples.size(), 6u);
  EXPECT_EQ(relative(samples[0]), "1.mp4#0");
  EXPECT_EQ(relative(samples[5]), "8.mp4#2");
  EXPECT_THAT(stream->skipped(),
              ElementsAre(Pair("empty", 1), Pair("no video stream", 1), Pair("not a video", 1),
                          Pair("too large", 1), Pair("unreadable", 3)));
}

TEST_F(VideoDamage, AFileThatGivesNothingInTimeIsLeft) {
  make("a.mp4", {.frames = 3});
  DecodeFailure failure;
  ASSERT_NE(VideoFilm::open(path("a.mp4"), {.timeout = 300}, failure), nullptr);
  EXPECT_EQ(VideoFilm::open(path("a.mp4"), {.timeout = 1e-9}, failure), nullptr);
  EXPECT_EQ(failure.reason, "too slow");
  EXPECT_THAT(failure.detail, HasSubstr("nothing came for"));
}

TEST_F(VideoDamage, FilmsThatAreAllGoneAreAnErrorNotAnEnd) {
  for (const char* name : {"1.mp4", "2.mp4", "3.mp4"}) make(name, {.frames = 3});
  const auto stream = open("*.mp4", "threads=0");
  EXPECT_EQ(relative(*stream->next()), "1.mp4#0");
  fs::remove(folder_ / "2.mp4");
  for (const char* key : {"1.mp4#1", "1.mp4#2", "3.mp4#0"}) {
    EXPECT_EQ(relative(*stream->next()), key);
  }
  EXPECT_EQ(stream->skipped().at("unreadable"), 1) << "one that is gone is skipped";
  const auto again = open("*.mp4", "threads=0");
  ASSERT_TRUE(again->next());
  fs::remove(folder_ / "1.mp4");
  fs::remove(folder_ / "3.mp4");
  EXPECT_THAT([&] { rest(*again); }, ThrowsMessage<Error>(HasSubstr("all films are gone")));
}

TEST_F(VideoDamage, APlayListInAFileLeadsToNoAddress) {
  LoopbackServer server;
  make("a.ts", {.frames = 3});
  server.serve("/a.ts", read_bytes(path("a.ts")));
  put_text("1.mp4", cat("#EXTM3U\n#EXT-X-TARGETDURATION:1\n#EXTINF:1,\n", server.url("/a.ts"),
                        "\n#EXT-X-ENDLIST\n"));
  EXPECT_THROW(all("1.mp4"), Error);
  EXPECT_EQ(server.requests("/a.ts"), 0);
}

// The first would be opened again and again, the others be waited for.
TEST_F(VideoDamage, AScriptInAFileOpensNothing) {
  ASSERT_EQ(::mkfifo((folder_ / "pipe").c_str(), 0600), 0);
  put_text("1.ts", "#EXTM3U\n#EXT-X-STREAM-INF:BANDWIDTH=1\n1.ts\n");
  make("a.ts", {.frames = 3});
  put_text("2.ts", "#EXTM3U\n#EXT-X-TARGETDURATION:1\n#EXTINF:1,\na.ts\n");
  put_text("3.ts", "ffconcat version 1.0\nfile pipe\n");
  put_text("4.ts", "ffconcat version 1.0\nfile a.ts\n");
  const auto stream = open("*.ts");
  EXPECT_EQ(rest(*stream).size(), 3u);
  EXPECT_THAT(stream->skipped(), ElementsAre(Pair("not a video", 4)));
}

TEST_F(VideoDamage, AFilmIsLeftWhenAsked) {
  make("1.mp4", {.frames = 250});
  make("2.mp4", {.frames = 250});
  for (const std::string threads : {"threads=0", "threads=2"}) {
    const auto stream = open("*.mp4", threads);
    ASSERT_TRUE(stream->next());
    const std::string position = stream->position();
    stream->stop();
    EXPECT_FALSE(stream->next()) << threads;
    EXPECT_EQ(stream->position(), position) << threads;
    EXPECT_THAT(stream->skipped(), IsEmpty()) << threads;
    const auto again = open("*.mp4", threads);
    again->seek(position);
    EXPECT_EQ(relative(*again->next()), "1.mp4#1") << threads;
  }
}

TEST_F(VideoDamage, AFilmThatEndsInMidFrameIsCutThere) {
  make("whole.mp4", {.frames = 40, .rough = true});
  make("whole.avi", {.frames = 40, .codec = "mpeg4", .rough = true});
  for (const std::string ending : {"mp4", "avi"}) {
    const auto whole = all("whole." + ending);
    const auto bytes = bytes_of("whole." + ending);
    put_text("cut." + ending, bytes.substr(0, bytes.size() * 6 / 10));
    const auto stream = open("cut." + ending);
    const auto samples = rest(*stream);
    EXPECT_THAT(samples.size(), AllOf(Gt(12u), Lt(36u))) << ending;
    for (const auto& sample : samples) {
      const int number = shown_number(sample.picture);
      ASSERT_GE(number, 0);
      EXPECT_TRUE(sample.picture == whole[static_cast<std::size_t>(number)].picture) << number;
    }
    EXPECT_THAT(stream->skipped(), ElementsAre(Pair("truncated", 1))) << ending;
  }
}

TEST_F(VideoDamage, AFilmThatBeginsInMidFrameGivesWholeFramesOnly) {
  make("whole.ts", {.frames = 40, .b_frames = 3, .open_groups = true, .rough = true});
  const auto whole = all("whole.ts");
  const auto bytes = bytes_of("whole.ts");
  constexpr std::size_t kPacket = 188;
  for (std::size_t cut = 3; cut < bytes.size() / kPacket; cut += 7) {
    put_text("cut.ts", bytes.substr(cut * kPacket));
    const auto stream = open("cut.ts");
    std::vector<Sample> samples;
    try {
      samples = rest(*stream);
    } catch (const Error&) {  // no key frame is left
    }
    for (const auto& sample : samples) {
      const int number = shown_number(sample.picture);
      ASSERT_GE(number, 0) << cut;
      EXPECT_TRUE(sample.picture == whole[static_cast<std::size_t>(number)].picture) << cut;
    }
    const std::size_t bytes_left = bytes.size() - cut * kPacket;
    if (bytes_left > bytes.size() / 2) {
      EXPECT_GT(samples.size(), 12u) << cut;
    }
  }
}

TEST_F(VideoDamage, AFilmThatChangesItsSizeIsCutThere) {
  make("small.ts", {.frames = 24});
  make("large.ts", {.width = 96, .height = 64, .frames = 24});
  put_text("1.ts", bytes_of("small.ts") + bytes_of("large.ts"));
  make("2.mp4", {.frames = 2});
  const auto stream = open("[12].*");
  const auto samples = rest(*stream);
  EXPECT_EQ(stream->skipped()["changes size"], 1);
  ASSERT_GT(samples.size(), 20u);
  for (const auto& sample : samples) EXPECT_EQ(sample.picture.width, 64);
  EXPECT_EQ(relative(samples.back()), "2.mp4#1");
}

TEST_F(VideoDamage, AfterDamageAFilmContinuesAtTheNextKeyFrame) {
  make("a.mp4", {.frames = 60, .rough = true});
  const auto whole = all("a.mp4");
  auto bytes = read_bytes(path("a.mp4"));
  const auto middle = bytes.begin() + static_cast<std::ptrdiff_t>(bytes.size() / 2);
  std::fill(middle, middle + 4000, std::byte{0});  // some frames
  put_bytes("a.mp4", bytes);
  for (const auto* threads : {"threads=1", "threads=3"}) {
    const auto stream = open("a.mp4", threads);
    const auto samples = rest(*stream);
    EXPECT_THAT(stream->skipped(), ElementsAre(Pair("corrupt", 1)));
    EXPECT_THAT(samples.size(), AllOf(Gt(30u), Lt(60u)));
    // No picture that was not in the film.
    for (const auto& sample : samples) {
      const int number = shown_number(sample.picture);
      ASSERT_GE(number, 0);
      EXPECT_TRUE(sample.picture == whole[static_cast<std::size_t>(number)].picture) << number;
    }
    EXPECT_EQ(shown_number(samples.back().picture), 59);
  }
}

TEST_F(VideoDamage, WhereNothingDecodesTheStreamSaysSo) {
  put_text("1.mp4", "<html>");
  put_text("2.mp4", "");
  const auto stream = open("*.mp4");
  EXPECT_THAT([&] { stream->next(); },
              ThrowsMessage<Error>(AllOf(HasSubstr("2 films"), HasSubstr(folder_.string()),
                                         HasSubstr("1 not a video"))));
}

TEST_F(VideoDamage, ThousandsOfDamagedFilmsAreReadOrRefused) {
  constexpr std::uint64_t kMutations = 2400;
  std::vector<std::vector<std::byte>> originals;
  for (const auto& [name, codec] : {std::pair{"a.mp4", "libx264"},
                                    {"b.mkv", "libx264"},
                                    {"c.ts", "libx264"},
                                    {"d.avi", "mpeg4"},
                                    {"e.mp4", "mpeg4"},
                                    {"f.mpg", "mpeg2video"}}) {
    make(name, {.frames = 8, .codec = codec, .key_every = 4});
    originals.push_back(read_bytes(path(name)));
  }
  const int file = ::memfd_create("damaged", MFD_CLOEXEC);  // in memory: disks are slow
  ASSERT_GE(file, 0);
  std::map<std::string, int> outcomes;
  for (std::uint64_t i = 0; i < kMutations; ++i) {
    Random random(11, Purpose("damaged films"), i);
    auto bytes = originals[i % originals.size()];
    for (auto times = 1 + random.below(3); times > 0; --times) damage(bytes, random, {});
    ASSERT_EQ(::ftruncate(file, 0), 0);
    ASSERT_EQ(::pwrite(file, bytes.data(), bytes.size(), 0), std::ssize(bytes));
    const auto stream = open_stream(cat("video:/proc/self/fd/", file, "?threads=0&size=24"));
    int frames = 0;
    try {
      while (const auto sample = stream->next()) {
        ++frames;
        ASSERT_EQ(sample->picture.rgb.size(),
                  static_cast<std::size_t>(sample->picture.width * sample->picture.height * 3));
        ASSERT_LT(frames, 100);
        if (frames == 3) stream->seek(stream->position());
      }
    } catch (const Error&) {  // nothing in it decodes
      EXPECT_EQ(frames, 0);
    }
    ++outcomes[frames == 8 ? "whole" : frames > 0 ? "in part" : "refused"];
    for (const auto& [reason, count] : stream->skipped()) ++outcomes[reason];
  }
  ::close(file);
  for (const auto& [outcome, count] : outcomes) {
    EXPECT_THAT(outcome, AnyOf("whole", "in part", "refused", "not a video", "no video stream",
                               "truncated", "corrupt", "too large", "changes size", "unsupported",
                               "shorter than before"));
  }
  // Damage of every sort was reached, not only the first check.
  EXPECT_GT(outcomes["whole"], 100);
  EXPECT_GT(outcomes["in part"], 100);
  EXPECT_GT(outcomes["refused"], 100);
  EXPECT_GT(outcomes["corrupt"], 100);
  EXPECT_GT(outcomes["truncated"], 20);
}

}  // namespace
}  // namespace riffle

// The promise that every shape keeps, alone and around others: read n, save the position, open the
// stream again, seek, and what follows is what an uninterrupted reading gives.

#include <limits>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "riffle/base/text.h"
#include "riffle/stream/testing/generated_stream.h"
#include "riffle/stream/testing/picture_folder.h"

namespace riffle {
namespace {

const std::vector<std::string> kShapes = {
    "",
    "clips:length=7",
    "clips:length=4,pick=random",
    "loop:times=5,clips:length=4,pick=random",
    "limit:samples=61",
    "subsample:every=3",
    "subsample:every=3,pick=random",
    "loop:times=3",
    "loop",
    "shuffle:window=30",
    "shuffle:window=30,memory=0",
    "decorrelate:window=50",
    "throttle:rate=1e8",
    "mix:synthetic:?size=8&samples=25,share=0.4",
    "junk:share=0.4",
    "junk:share=0.4,run=5,kind=halfdecoded",
    "still:length=20,share=0.5",
    "reupload:share=0.4,window=7",
    "reupload:share=0.4",
    "zipf:classes=4",
    "lifelong:groups=3,list=LIST,holdout=2",
    "lifelong:groups=3,list=LIST,times=3",
    "lifelong:groups=3,list=LIST,only=2",
    "lifelong:groups=3,list=LIST,holdout=3,part=heldout",
    // Nested.
    "junk:share=0.3,clips:length=5,reupload:window=9,still:length=6,junk:seed=1",
    "zipf:classes=4,loop:times=4,still:length=30,share=0.3,reupload:share=0.2,window=20",
    "limit:samples=40,loop:times=3,clips:length=5",
    "clips:length=5,loop:times=2,subsample:every=4",
    "loop:times=20,clips:length=7",
    "loop:times=2,shuffle:window=40,clips:length=3",
    "clips:length=6,decorrelate:window=64,memory=0,limit:samples=200",
    "lifelong:groups=3,list=LIST,loop:times=2,clips:length=4,throttle:rate=1e8",
    "clips:length=2,lifelong:groups=2,list=LIST,overlap=0.3,decorrelate:window=33",
    "mix:synthetic:?size=8,loop:times=2,mix:synthetic:?size=8&seed=4,share=0.1,subsample:every=2",
};

class Positions : public PictureFolder {
 protected:
  void SetUp() override { put_text("list.txt", "c\na\nb\nd\n"); }

  std::string with_list(std::string shapes) const {
    const auto at = shapes.find("LIST");
    return at == std::string::npos ? shapes
                                   : shapes.replace(at, 4, (folder_ / "list.txt").string());
  }

  // A second stream goes to the place of the first from anywhere else, and both give the same.
  void expect_exact(const StreamFactory& first_source, const StreamFactory& second_source,
                    const std::string& shapes, std::uint64_t rounds) const {
    constexpr std::uint64_t kMaxBefore = 150, kMaxAfter = 120;
    const std::string text = with_list(shapes);
    for (std::uint64_t round = 0; round < rounds; ++round) {
      SCOPED_TRACE(cat(shapes, " round ", round));
      Random random(3, Purpose("positions"), round);
      const auto first = open_shapes(first_source, text);
      for (auto left = random.below(kMaxBefore); left > 0; --left) first->next();
      const std::string position = first->position();
      for (const char c : position) ASSERT_TRUE(c >= ' ' && c <= '~') << position;
      ASSERT_LT(position.size(), 600u) << position;
      const auto second = open_shapes(second_source, text);
      for (auto left = random.below(20); left > 0; --left) second->next();
      second->seek(position);
      ASSERT_EQ(second->position(), position);
      for (std::uint64_t i = 0; i < kMaxAfter; ++i) {
        const auto a = first->next(), b = second->next();
        ASSERT_EQ(a.has_value(), b.has_value());
        if (!a) break;
        expect_same(*a, *b);
        ASSERT_EQ(first->position(), second->position());
        if (testing::Test::HasFailure()) return;
      }
    }
  }
};

TEST_F(Positions, OfStillsAreExact) {
  const auto source = generated({.samples = 80, .labels = 4, .broken_every = 6});
  for (const auto& shapes : kShapes) expect_exact(source, source, shapes, 12);
}

TEST_F(Positions, OfVideosAreExact) {
  const auto source = generated({.samples = 130,
                                 .clip_length = 9,
                                 .first_clip = std::numeric_limits<std::int64_t>::max() - 20,
                                 .labels = 4,
                                 .broken_every = 11});
  for (const auto& shapes : kShapes) expect_exact(source, source, shapes, 12);
}

TEST_F(Positions, OfASingleVideoOverAndOverAreExact) {
  const auto source = generated(
      {.samples = 30, .clip_length = 30, .first_clip = 7, .labels = 4, .broken_every = 11});
  for (const auto& shapes : kShapes) expect_exact(source, source, shapes, 12);
}

TEST_F(Positions, OfAFolderAreExactAndDoNotDependOnThreads) {
  for (int i = 0; i < 60; ++i) {
    auto bytes = solid_png(i);
    if (i % 7 == 3) bytes.resize(bytes.size() / 2);
    put_bytes(cat("pictures/", "abcd"[i % 4], "/", i, " %.png"), bytes);
  }
  const auto folder = [&](int threads) -> StreamFactory {
    return [uri = cat("folder:", (folder_ / "pictures").string(),
                      "?order=shuffle&threads=", threads)] { return open_stream(uri); };
  };
  for (const auto& shapes : kShapes) expect_exact(folder(0), folder(3), shapes, 3);
}

TEST_F(Positions, CountsOfWhatIsSkippedNeverFall) {
  for (const auto& shapes : kShapes) {
    SCOPED_TRACE(shapes);
    const auto stream =
        open_shapes(generated({.samples = 60, .labels = 4, .broken_every = 5}), with_list(shapes));
    const auto start = stream->position();
    std::int64_t before = 0;
    for (int round = 0; round < 3; ++round) {
      for (int i = 0; i < 90 && stream->next(); ++i) {
        const auto now = stream->skipped();
        const auto broken = now.contains("broken") ? now.at("broken") : 0;
        EXPECT_GE(broken, before);
        before = broken;
      }
      const auto counted = stream->skipped();
      stream->seek(start);
      EXPECT_EQ(stream->skipped(), counted);
    }
    EXPECT_GT(before, 0);
  }
}

TEST_F(Positions, ATextThatIsNotAPositionIsRefused) {
  const auto source = generated({.samples = 80, .labels = 4});
  for (const auto& shapes : kShapes) {
    const auto stream = open_shapes(source, with_list(shapes));
    for (int i = 0; i < 10; ++i) stream->next();
    const auto position = stream->position();
    for (const std::string bad : {"", "x", "-1", "clips 1", "limit -1 x", "%", "0 0 0 0 0 0 0"}) {
      EXPECT_THROW(stream->seek(bad), Error) << shapes << ": " << bad;
    }
    EXPECT_EQ(stream->position(), position) << shapes;
  }
}

TEST_F(Positions, WithCountsThatNoStreamReachesAreRefused) {
  const auto stream = open_shapes(generated({.samples = 80}), "clips:length=7");
  stream->next();
  const auto parts = split(stream->position(), ' ');
  const auto seek_with = [&](std::size_t number) {
    auto changed = parts;
    changed.at(1 + number) = std::to_string(std::numeric_limits<std::int64_t>::max());
    stream->seek(join(changed, " "));
  };
  EXPECT_THROW(seek_with(0), Error);
  EXPECT_THROW(seek_with(1), Error);
  EXPECT_NO_THROW(seek_with(3)) << "the first frame, by its name";
  EXPECT_NO_THROW(seek_with(4)) << "a clip of the stream below";
}

TEST_F(Positions, SurviveAStopInTheMiddleOfAWait) {
  const auto source = generated({.samples = 10, .waits = true});
  for (const std::string shapes :
       {"clips:length=3", "limit:samples=99", "subsample:every=3", "loop", "loop:times=2",
        "throttle:rate=1e8", "mix:synthetic:?size=8&samples=3,share=0.9", "junk:share=0.4",
        "still:length=5,share=0.5", "reupload:share=0.4,window=4"}) {
    const auto stream = open_shapes(source, shapes);
    stream->stop();  // so that it does not wait at the end
    const auto before = take(*stream);
    const auto position = stream->position();
    // The stream has grown when it is opened again.
    const auto grown = open_shapes(generated({.samples = 40}), shapes);
    std::vector<Sample> whole;
    const auto uninterrupted = open_shapes(generated({.samples = 40}), shapes);
    whole = take(*uninterrupted, 60);
    if (shapes.starts_with("throttle")) {
      EXPECT_TRUE(before.empty());
    } else {
      EXPECT_FALSE(before.empty()) << shapes;
    }
    grown->seek(position);
    for (std::size_t i = before.size(); i < whole.size(); ++i) {
      SCOPED_TRACE(cat(shapes, " sample ", i));
      const auto sample = grown->next();
      ASSERT_TRUE(sample);
      expect_same(*sample, whole[i]);
    }
  }
}

}  // namespace
}  // namespace riffle

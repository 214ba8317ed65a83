#include "riffle/stream/divided_reader.h"

#include <filesystem>
#include <functional>
#include <memory>
#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "riffle/base/error.h"
#include "riffle/base/text.h"
#include "riffle/stream/testing/recording.h"
#include "riffle/stream/testing/shards_folder.h"

namespace riffle {
namespace {

constexpr std::int64_t kBatch = 4;

struct ReadRound {
  std::vector<Sample> samples;  // each with the picture of the reader whose it is
  std::string position;
  std::map<std::string, std::int64_t> skipped;
  std::optional<std::int64_t> period;
};

class DividedStream : public ShardsFolder {
 protected:
  using Open = std::function<std::unique_ptr<Stream>()>;

  // Returns `most` rounds, or those until the end, as that many readers see them who tell one
  // another of their doubts.
  std::vector<ReadRound> read(const Open& open, int readers, int most,
                              const std::string& from = "") {
    std::vector<std::unique_ptr<Stream>> streams;
    std::vector<std::unique_ptr<DividedReader>> sources;
    for (int i = 0; i < readers; ++i) {
      streams.push_back(open());
      if (!from.empty()) streams.back()->seek(from);
      sources.push_back(std::make_unique<DividedReader>(
          *streams.back(), StreamShare{.reader = i, .readers = readers, .batch = kBatch}));
    }
    Caution caution;
    std::vector<ReadRound> rounds;
    decoded_ = doubts_ = 0;
    for (bool ended = false; !ended && std::ssize(rounds) < most;) {
      const std::string began = streams[0]->position();
      std::vector<std::vector<Sample>> seen;
      bool doubt = false;
      for (const auto& source : sources) {
        source->begin_round();
        auto& samples = seen.emplace_back();
        while (std::ssize(samples) < readers * kBatch) {
          auto sample = source->next();
          if (!sample) break;
          if (!sample->picture.rgb.empty()) ++decoded_;
          samples.push_back(std::move(*sample));
        }
        doubt = doubt || source->in_doubt();
      }
      if (doubt) {
        ++doubts_;
        const std::int64_t careful = caution.doubt();
        for (const auto& source : sources) source->decode_all(began, careful);
        continue;
      }
      caution.trust();
      ended = std::ssize(seen[0]) < readers * kBatch;
      rounds.push_back(merged(streams, seen));
    }
    return rounds;
  }

  ReadRound merged(const std::vector<std::unique_ptr<Stream>>& streams,
                   const std::vector<std::vector<Sample>>& seen) {
    ReadRound round;
    round.position = streams[0]->position();
    round.skipped = streams[0]->skipped();
    round.period = streams[0]->period();
    for (std::size_t reader = 0; reader < seen.size(); ++reader) {
      EXPECT_EQ(streams[reader]->position(), round.position);
      EXPECT_EQ(streams[reader]->skipped(), round.skipped);
      EXPECT_EQ(streams[reader]->period(), round.period);
      EXPECT_EQ(seen[reader].size(), seen[0].size());
    }
    for (std::size_t i = 0; i < seen[0].size(); ++i) {
      const auto owner = i / kBatch;
      round.samples.push_back(seen[owner][i]);
      for (const auto& samples : seen) {
        EXPECT_EQ(samples[i].key, round.samples.back().key);
        EXPECT_EQ(samples[i].index, round.samples.back().index);
        EXPECT_EQ(samples[i].label, round.samples.back().label);
      }
    }
    return round;
  }

  // Expects of 1, 2 and 3 readers what the whole stream gives, in `most` rounds of three readers.
  void expect_whole(const Open& open, int most = 1000) {
    for (const int readers : {1, 2, 3}) {
      SCOPED_TRACE(readers);
      const auto whole = open();
      const auto rounds = read(open, readers, 3 * most / readers);
      ASSERT_FALSE(rounds.empty());
      for (const auto& round : rounds) {
        for (const Sample& sample : round.samples) {
          const auto expected = whole->next();
          ASSERT_TRUE(expected);
          expect_same(sample, *expected);
        }
        const bool ended = std::ssize(round.samples) < readers * kBatch;
        EXPECT_TRUE(!ended || !whole->next());
        EXPECT_EQ(round.position, whole->position());
        EXPECT_EQ(round.skipped, whole->skipped());
        EXPECT_EQ(round.period, whole->period());
        if (testing::Test::HasFailure()) return;
      }
    }
  }

  static std::string name_of(int picture) {
    return cat("label ", picture / 20, "/", 1000 + picture, ".png");
  }
  void put_pictures(int count, const std::set<int>& bad) {
    for (int i = 0; i < count; ++i) {
      const std::string name = name_of(i);
      bad.contains(i) ? put_text(name, "no picture") : put_bytes(name, solid_png(i));
    }
  }
  Open folder(const std::string& options, const std::string& shapes = "") {
    const std::string uri = cat("folder:", encode_percent(folder_.string()), "?", options);
    return [=] { return open_stream(uri, shapes); };
  }

  std::int64_t decoded_ = 0;  // pictures that readers got in the last read()
  int doubts_ = 0;
};

TEST_F(DividedStream, OfAFolderGivesWhatTheWholeGives) {
  put_pictures(61, {0, 11, 12, 29, 60});
  for (const char* options : {"threads=0", "threads=3", "order=shuffle&threads=2"}) {
    SCOPED_TRACE(options);
    expect_whole(folder(options));
    EXPECT_GT(doubts_, 0);
  }
}

TEST_F(DividedStream, WithoutBadPicturesDecodesEachOnce) {
  put_pictures(50, {});
  const auto rounds = read(folder("threads=2"), 3, 1000);
  EXPECT_EQ(rounds.size(), 5u);
  EXPECT_EQ(decoded_, 50);
  EXPECT_EQ(doubts_, 0);
}

TEST_F(DividedStream, WithABadPictureDecodesOneRoundTwice) {
  put_pictures(48, {20});
  read(folder("threads=2"), 2, 1000);
  EXPECT_EQ(doubts_, 1);
  // Once each, the round of eight by both readers, and what they decoded of it before the doubt.
  EXPECT_LE(decoded_, 47 + 8 + 8);
}

TEST_F(DividedStream, OfBadPicturesIsHardlyReadTwice) {
  std::set<int> bad;
  for (int i = 0; i < 150; i += 3) bad.insert(i);
  put_pictures(150, bad);
  expect_whole(folder("threads=2"));
  EXPECT_LT(doubts_, 5);
}

TEST_F(DividedStream, LeavesTheFilesOfOtherReadersAlone) {
  put_pictures(16, {});
  const auto stream = folder("threads=2")();
  for (int i = 0; i < 16; ++i) {
    if (i / kBatch % 2 == 0) std::filesystem::remove(folder_ / name_of(i));
  }
  DividedReader source(*stream, {.reader = 1, .readers = 2, .batch = kBatch});
  for (int i = 0; i < 16; ++i) {
    if (i % (2 * kBatch) == 0) source.begin_round();
    const auto sample = source.next();
    ASSERT_TRUE(sample) << i;
    EXPECT_EQ(sample->picture.rgb.empty(), i / kBatch % 2 == 0);
  }
  EXPECT_THAT(stream->skipped(), testing::IsEmpty());
}

TEST_F(DividedStream, OfShardsGivesWhatTheWholeGives) {
  for (int shard = 0; shard < 3; ++shard) {
    GeneratedTar tar;
    for (int i = 0; i < 13; ++i) {
      const std::string name = cat(shard, "-", 100 + i);
      if (i == 5 + shard) {
        tar.add(name + ".png", "no picture");
      } else {
        tar.add(name + ".png", solid_png(20 * shard + i));
      }
      tar.add(name + ".cls", std::to_string(i % 4));
    }
    if (shard == 1) tar.add("../out.png", solid_png(1));
    put(cat(shard, ".tar"), tar);
  }
  put_text("1b.tar", "no tar");
  GeneratedTar packed;
  for (int i = 0; i < 9; ++i) packed.add(cat(i, ".png"), solid_png(i));
  put_bytes("4.tar", compressed(packed.finished(), "gzip"));
  for (const char* options : {"threads=0", "threads=3"}) {
    SCOPED_TRACE(options);
    expect_whole([&] { return open(options); });
    EXPECT_GT(doubts_, 0);
  }
}

TEST_F(DividedStream, PassesThroughShapesThatGiveOneForOne) {
  put_pictures(31, {3, 17, 30});
  for (const char* shapes : {"limit:samples=25", "loop", "loop:times=2", "throttle:rate=1000000000",
                             "limit:samples=21,loop,limit:samples=50"}) {
    SCOPED_TRACE(shapes);
    expect_whole(folder("threads=2", shapes), 8);
    EXPECT_GT(doubts_, 0);
  }
}

TEST_F(DividedStream, MayRepeatWithinARound) {
  put_pictures(5, {3});
  expect_whole(folder("threads=2", "loop"), 10);
}

TEST_F(DividedStream, OfScenesGivesWhatTheWholeGives) {
  const auto open = [] { return open_stream("synthetic:?frames=5&size=8&samples=40"); };
  expect_whole(open);
  EXPECT_EQ(decoded_, 40);
}

TEST_F(DividedStream, ThatCannotBeDividedIsDecodedByAll) {
  put_pictures(31, {3, 17});
  expect_whole(folder("threads=2", "subsample:every=2"));
  EXPECT_EQ(doubts_, 0);
  EXPECT_EQ(decoded_, 3 * 15);
}

TEST_F(DividedStream, ContinuesAsAnyNumberOfReaders) {
  put_pictures(61, {0, 11, 12, 29, 60});
  const Open open = folder("threads=2");
  const auto begun = read(open, 2, 2);
  const auto whole = open();
  for (int i = 0; i < 16; ++i) whole->next();
  for (const int readers : {1, 3}) {
    const auto again = open();
    again->seek(begun.back().position);
    for (const auto& round : read(open, readers, 1000, begun.back().position)) {
      for (const Sample& sample : round.samples) expect_same(sample, again->next().value());
    }
  }
  EXPECT_EQ(begun.back().position, whole->position());
}

TEST_F(DividedStream, OfNothingUsableThrowsAsTheWholeDoes) {
  put_pictures(10, {0, 1, 2, 3, 4, 5, 6, 7, 8, 9});
  EXPECT_THAT([&] { read(folder("threads=2"), 2, 10); },
              testing::ThrowsMessage<Error>(testing::HasSubstr("none of the 10 pictures")));
}

TEST_F(DividedStream, KeepsTheFilesOfAllPictures) {
  put_pictures(8, {});
  const auto stream = folder("threads=2&original=1")();
  ASSERT_TRUE(stream->divide({.reader = 1, .readers = 2, .batch = kBatch}));
  const auto other = stream->next();
  EXPECT_TRUE(other->picture.rgb.empty());
  ASSERT_TRUE(other->picture.file);
  EXPECT_EQ(*other->picture.file, solid_png(0));
}

TEST_F(DividedStream, IsWholeAgainAfterItsReader) {
  put_pictures(8, {2});
  const auto stream = folder("threads=2")();
  {
    DividedReader source(*stream, {.reader = 1, .readers = 2, .batch = kBatch});
    source.begin_round();
    EXPECT_TRUE(source.next()->picture.rgb.empty());
  }
  EXPECT_EQ(levels(*stream), (std::vector<int>{1, 3, 4, 5, 6, 7}));
}

TEST(Caution, LastsLongerTheMoreOftenThereIsDoubt) {
  Caution caution;
  const auto trust = [&](std::int64_t rounds) {
    for (std::int64_t i = 0; i < rounds; ++i) caution.trust();
  };
  for (std::int64_t expected = 1; expected < Caution::kMostRounds; expected *= 2) {
    EXPECT_EQ(caution.doubt(), expected);
    trust(expected);
  }
  EXPECT_EQ(caution.doubt(), Caution::kMostRounds);
  trust(Caution::kMostRounds);
  EXPECT_EQ(caution.doubt(), Caution::kMostRounds);
  trust(Caution::kMostRounds + 10);
  EXPECT_EQ(caution.doubt(), 1);
}

}  // namespace
}  // namespace riffle

// Run alone and under mpirun as several ranks: ranks that divide a stream take the batches of one
// process, and decode their own pictures.
#include <filesystem>
#include <functional>
#include <memory>
#include <set>
#include <string>

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "riffle/base/text.h"
#include "riffle/dist/ranks.h"
#include "riffle/stream/testing/picture_folder.h"
#include "riffle/stream/uri.h"
#include "riffle/train/shared_stream.h"

namespace riffle {
namespace {

constexpr std::int64_t kTaken = 12;  // can be divided by 1, 2, 3 and 4
constexpr int kSize = 6;

// Each rank has a folder of its own, with the same files.
class RanksSharedStream : public PictureFolder {
 protected:
  static std::string name_of(int picture) { return cat("a/", 1000 + picture, ".png"); }
  void put_pictures(int count, const std::set<int>& bad) const {
    for (int i = 0; i < count; ++i) {
      bad.contains(i) ? put_text(name_of(i), "no picture") : put_bytes(name_of(i), solid_png(i));
    }
  }
  std::unique_ptr<Stream> open(const std::string& shapes) const {
    return open_stream(cat("folder:", encode_percent(folder_.string()), "?threads=2"), shapes);
  }

  struct Taking {
    Taking(Stream& stream, Ranks& ranks)
        : intake(stream, ranks.part_of(kTaken), kSize, 3, at::kCPU, Sharing{ranks}.stream_share()),
          batches(intake, {ranks}) {}
    Intake intake;
    SharedStream batches;
  };

  // From `from` on, up to `most` batches. Returns the last position.
  std::string expect_batches_of_one_process(const std::string& shapes, int most,
                                            const std::string& from = "") {
    const auto stream = open(shapes), whole_stream = open(shapes);
    if (!from.empty()) stream->seek(from);
    if (!from.empty()) whole_stream->seek(from);
    Taking shared(*stream, ranks_), whole(*whole_stream, one_rank());
    const std::int64_t part = ranks_.part_of(kTaken);
    std::string position;
    for (int i = 0; i < most; ++i) {
      const auto found = shared.batches.take(), expected = whole.batches.take();
      EXPECT_EQ(found.has_value(), expected.has_value());
      if (!found || !expected) break;
      EXPECT_EQ(found->samples.size(), expected->samples.size());
      for (std::size_t at = 0; at < expected->samples.size(); ++at) {
        EXPECT_EQ(found->samples[at].index, expected->samples[at].index);
        EXPECT_EQ(std::filesystem::path(found->samples[at].key).filename(),
                  std::filesystem::path(expected->samples[at].key).filename());
      }
      EXPECT_TRUE(found->pictures.equal(expected->pictures.narrow(0, ranks_.rank() * part, part)));
      EXPECT_EQ(found->position, expected->position);
      EXPECT_EQ(found->skipped, expected->skipped);
      EXPECT_EQ(found->period, expected->period);
      position = found->position;
    }
    EXPECT_EQ(shared.intake.left_out(), whole.intake.left_out());
    return position;
  }

  Ranks& ranks_ = ranks_of_process();
};

TEST_F(RanksSharedStream, TakesTheBatchesOfOneProcess) {
  put_pictures(131, {0, 13, 14, 15, 40, 41, 99, 124, 130});
  for (const char* shapes : {"", "loop", "limit:samples=100", "limit:samples=70,loop"}) {
    SCOPED_TRACE(shapes);
    const std::string position = expect_batches_of_one_process(shapes, 25);
    expect_batches_of_one_process(shapes, 3, position);
  }
}

TEST_F(RanksSharedStream, OfMostlyBadPicturesTakesTheBatchesOfOneProcess) {
  std::set<int> bad;
  for (int i = 0; i < 200; ++i) {
    if (i % 5 > 1) bad.insert(i);
  }
  put_pictures(200, bad);
  expect_batches_of_one_process("loop", 30);
}

TEST_F(RanksSharedStream, DecodesNoPictureOfAnotherRank) {
  put_pictures(48, {});
  const auto stream = open("");
  const std::int64_t part = ranks_.part_of(kTaken);
  for (int i = 0; i < 48; ++i) {
    if (i % kTaken / part != ranks_.rank()) std::filesystem::remove(folder_ / name_of(i));
  }
  Taking shared(*stream, ranks_);
  for (int batch = 0; batch < 4; ++batch) {
    const auto taken = shared.batches.take();
    ASSERT_TRUE(taken);
    for (std::int64_t i = 0; i < part; ++i) {
      EXPECT_EQ(taken->pictures[i][0][0][0].item<int>(), batch * kTaken + ranks_.rank() * part + i);
    }
    EXPECT_THAT(taken->skipped, testing::IsEmpty());
  }
  EXPECT_FALSE(shared.batches.take());
}

TEST_F(RanksSharedStream, ThatIsStoppedInDoubtEnds) {
  put_pictures(48, {1, 2, 3, 4, 14, 20, 25, 30, 37, 40});
  const auto stream = open("loop");
  Taking shared(*stream, ranks_);
  ASSERT_TRUE(shared.batches.take());
  if (ranks_.rank() == ranks_.size() - 1) shared.intake.stop();
  while (shared.batches.take()) {
  }
  EXPECT_TRUE(shared.batches.ended());
}

}  // namespace
}  // namespace riffle

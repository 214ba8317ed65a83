#include "riffle/stream/shapes/mix.h"

#include <set>

#include <gtest/gtest.h>

#include "riffle/stream/testing/generated_stream.h"

namespace riffle {
namespace {

bool is_made(const Sample& sample) { return sample.key.starts_with("item"); }

TEST(Mix, DrawsTheGivenShareFromTheSecondStreamAndKeepsBothOrders) {
  const auto stream = open_shapes(generated({.samples = 2000, .clip_length = 5}),
                                  "mix:synthetic:?size=8,share=0.3");
  const auto samples = take(*stream);
  expect_numbered(samples);
  const auto first = take(*generated({.samples = 2000})());
  const auto second = take(*open_stream("synthetic:?size=8"), 2000);
  std::size_t of_first = 0, of_second = 0;
  for (const auto& sample : samples) {
    const auto& expected = is_made(sample) ? first[of_first++] : second[of_second++];
    EXPECT_EQ(sample.key, expected.key);
    EXPECT_EQ(sample.picture, expected.picture);
  }
  EXPECT_EQ(of_first, 2000u);
  EXPECT_NEAR(static_cast<double>(of_second) / static_cast<double>(samples.size()), 0.3, 0.03);
}

TEST(Mix, ClipsOfTheTwoStreamsAreDistinct) {
  const auto samples = take(*open_shapes(generated({.samples = 300, .clip_length = 5}),
                                         "mix:synthetic:?size=8&frames=5"));
  std::set<std::int64_t> first, second;
  for (const auto& sample : samples) (is_made(sample) ? first : second).insert(sample.clip);
  EXPECT_EQ(first.size(), 60u);
  EXPECT_GT(second.size(), 40u);
  for (const auto clip : first) EXPECT_FALSE(second.contains(clip));
  EXPECT_EQ(open_shapes(generated({.samples = 3}), "mix:synthetic:?size=8,share=0")->next()->clip,
            kNoClip);
}

TEST(Mix, ClipsMayHaveLargeIds) {
  const auto samples = take(*open_shapes(
      generated({.samples = 300, .clip_length = 5, .first_clip = (std::int64_t{1} << 62) + 7}),
      "mix:synthetic:?size=8&frames=5"));
  std::set<std::int64_t> clips;
  for (const auto& sample : samples) {
    EXPECT_GE(sample.clip, 0);
    if (is_made(sample)) clips.insert(sample.clip);
  }
  EXPECT_EQ(clips.size(), 60u);
}

TEST(Mix, TheFirstContinuesAloneWhenTheSecondEnds) {
  const auto samples =
      take(*open_shapes(generated({.samples = 100}), "mix:synthetic:?size=8&samples=10"));
  EXPECT_EQ(samples.size(), 110u);
}

TEST(Mix, CountsWhatBothSkipped) {
  const auto stream =
      open_shapes(generated({.samples = 100, .broken_every = 10}), "mix:synthetic:");
  take(*stream);
  EXPECT_EQ(stream->skipped().at("broken"), 10);
}

TEST(Mix, ASeekThatFailsChangesNothing) {
  const auto stream = open_shapes(generated({.samples = 100}), "mix:synthetic:?size=8");
  take(*stream, 10);
  const auto position = stream->position();
  EXPECT_THROW(stream->seek("mix 1 0 1%201%20%25 nowhere"), Error);
  EXPECT_EQ(stream->position(), position);
}

}  // namespace
}  // namespace riffle

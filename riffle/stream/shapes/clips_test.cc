#include "riffle/stream/shapes/clips.h"

#include <cstdlib>
#include <set>

#include <gtest/gtest.h>

#include "riffle/stream/testing/generated_stream.h"

namespace riffle {
namespace {

double change_between(const Picture& a, const Picture& b) {
  double sum = 0;
  for (std::size_t i = 0; i < a.rgb.size(); ++i) sum += std::abs(a.rgb[i] - b.rgb[i]);
  return sum / static_cast<double>(a.rgb.size());
}

// One still: a slope of light, nowhere dark.
StreamFactory slope(int width, int height) {
  class Slope : public GeneratedStream {
   public:
    Slope(int width, int height)
        : GeneratedStream({.samples = 5, .width = width, .height = height}) {}
    std::optional<Sample> next() override {
      auto sample = GeneratedStream::next();
      if (!sample) return sample;
      auto& picture = sample->picture;
      for (int y = 0; y < picture.height; ++y) {
        for (int x = 0; x < picture.width; ++x) {
          picture.at(x, y)[0] = static_cast<std::uint8_t>(100 + 150 * x / picture.width);
          picture.at(x, y)[1] = static_cast<std::uint8_t>(100 + 150 * y / picture.height);
          picture.at(x, y)[2] = 200;
        }
      }
      return sample;
    }
  };
  return [width, height] { return std::make_unique<Slope>(width, height); };
}

TEST(Clips, AStillBecomesAClipOfThatManyFrames) {
  const auto source = generated({.samples = 4, .labels = 3, .width = 30, .height = 20});
  const auto stills = take(*source());
  const auto samples = take(*open_shapes(source, "clips:length=6"));
  ASSERT_EQ(samples.size(), 24u);
  expect_numbered(samples);
  for (std::size_t i = 0; i < samples.size(); ++i) {
    EXPECT_EQ(samples[i].clip, static_cast<std::int64_t>(i / 6));
    EXPECT_EQ(samples[i].label, stills[i / 6].label);
    EXPECT_EQ(samples[i].key, cat(stills[i / 6].key, " frame ", i % 6));
    EXPECT_EQ(samples[i].picture.width, 10);
    EXPECT_EQ(samples[i].picture.height, 10);
  }
}

TEST(Clips, FramesMoveSmoothlyAndShowNoBorder) {
  const auto samples = take(*open_shapes(slope(90, 60), "clips:length=64,size=24"), 64);
  double step = 0, far = 0;
  for (std::size_t i = 0; i < samples.size(); ++i) {
    EXPECT_EQ(samples[i].picture.width, 24);
    for (const auto value : samples[i].picture.rgb) ASSERT_GE(value, 100);
    if (i > 0) {
      const double changed = change_between(samples[i].picture, samples[i - 1].picture);
      EXPECT_GT(changed, 0);
      EXPECT_LT(changed, 6);
      step += changed / 63;
    }
    far += change_between(samples[i].picture, samples[(i + 32) % 64].picture) / 64;
  }
  EXPECT_GT(far, 3 * step);
}

TEST(Clips, ThePathIsAFunctionOfTheSeedAndTheClip) {
  const auto one = take(*open_shapes(slope(90, 60), "clips:length=8,size=24,seed=1"));
  const auto again = take(*open_shapes(slope(90, 60), "clips:length=8,size=24,seed=1"));
  const auto other = take(*open_shapes(slope(90, 60), "clips:length=8,size=24,seed=2"));
  for (std::size_t i = 0; i < one.size(); ++i) {
    expect_same(one[i], again[i]);
    EXPECT_NE(one[i].picture, other[i].picture);
  }
  EXPECT_NE(one[0].picture, one[8].picture);  // the same still, the next clip
}

TEST(Clips, OfAVideoTheFirstFramesOfEachClipAreKept) {
  const auto source = generated({.samples = 23, .clip_length = 10});
  const auto frames = take(*source());
  const auto samples = take(*open_shapes(source, "clips:length=4"));
  ASSERT_EQ(samples.size(), 4u + 4 + 3);
  expect_numbered(samples);
  for (std::size_t i = 0; i < samples.size(); ++i) {
    EXPECT_EQ(samples[i].clip, static_cast<std::int64_t>(i / 4));
    EXPECT_EQ(samples[i].picture, frames[i / 4 * 10 + i % 4].picture);
  }
  EXPECT_EQ(take(*open_shapes(source, "clips:length=64")).size(), 23u);
  EXPECT_EQ(open_shapes(source, "clips:length=4,size=5")->next()->picture.width, 5);
}

TEST(Clips, AVideoThatComesAgainIsAClipOfItsOwn) {
  // All of the first is one clip, whose number is the same in every pass.
  for (const std::int64_t clip_length : {10, 5}) {
    const auto source = generated({.samples = 10, .clip_length = clip_length});
    const auto samples = take(*open_shapes(source, "loop:times=3,clips:length=4"));
    const auto clips = static_cast<std::size_t>(3 * 10 / clip_length);
    ASSERT_EQ(samples.size(), 4 * clips);
    for (std::size_t i = 0; i < samples.size(); ++i) {
      EXPECT_EQ(samples[i].clip, static_cast<std::int64_t>(i / 4));
      EXPECT_EQ(samples[i].key, samples[i % (4 * clips / 3)].key);
    }
  }
  // A shorter one does not continue in the next pass.
  const auto samples = take(
      *open_shapes(generated({.samples = 3, .clip_length = 3}), "loop:times=4,clips:length=5"));
  ASSERT_EQ(samples.size(), 12u);
  for (std::size_t i = 0; i < 12; ++i) {
    EXPECT_EQ(samples[i].clip, static_cast<std::int64_t>(i / 3));
  }
}

TEST(Clips, OfAVideoFramesAtRandomPlacesMayBeTakenInOrderOfTime) {
  const auto source = generated({.samples = 2000, .clip_length = 40});
  const auto samples = take(*open_shapes(source, "clips:length=10,pick=random"));
  ASSERT_EQ(samples.size(), 500u);
  expect_numbered(samples);
  std::vector<int> tenths(10);
  for (std::size_t i = 0; i < samples.size(); ++i) {
    const auto item = parse_integer(samples[i].key.substr(5), "item");
    EXPECT_EQ(samples[i].clip, static_cast<std::int64_t>(i / 10));
    ASSERT_EQ(item / 40, samples[i].clip);
    if (i % 10 > 0) {
      ASSERT_GT(item, parse_integer(samples[i - 1].key.substr(5), "item"));
    }
    ++tenths[static_cast<std::size_t>(item % 40 / 4)];
  }
  for (const int count : tenths) EXPECT_NEAR(count, 50, 25);
  const auto short_ones = generated({.samples = 23, .clip_length = 10});
  EXPECT_EQ(keys(take(*open_shapes(short_ones, "clips:length=64,pick=random"))),
            keys(take(*short_ones())));
  const auto stills = generated({.samples = 3});
  EXPECT_EQ(keys(take(*open_shapes(stills, "clips:length=4,pick=random"))),
            keys(take(*open_shapes(stills, "clips:length=4"))));
}

TEST(Clips, RandomFramesOfAVideoThatComesAgainAreOthers) {
  const auto source = generated({.samples = 40, .clip_length = 40});
  const auto samples = take(*open_shapes(source, "loop:times=2,clips:length=8,pick=random"));
  ASSERT_EQ(samples.size(), 16u);
  EXPECT_EQ(samples[8].clip, 1);
  const auto all = keys(samples);
  EXPECT_NE(std::vector(all.begin(), all.begin() + 8), std::vector(all.begin() + 8, all.end()));
}

TEST(Clips, StillsAndVideosMayCome) {
  const auto samples = take(*open_shapes(
      generated({.samples = 30}), "mix:synthetic:?size=8&frames=3&samples=30,clips:length=2"));
  std::map<std::int64_t, std::set<bool>> kinds;
  for (const auto& sample : samples) kinds[sample.clip].insert(sample.key.starts_with("item"));
  for (const auto& [clip, kind] : kinds) EXPECT_EQ(kind.size(), 1u) << clip;
  expect_numbered(samples);
}

TEST(Clips, ThePositionInsideAClipIsShort) {
  const auto stream = open_shapes(generated({.samples = 30}), "clips:length=50");
  take(*stream, 75);
  EXPECT_EQ(stream->position(), "clips 75 2 25 0 0 1%201%20%25");
}

}  // namespace
}  // namespace riffle

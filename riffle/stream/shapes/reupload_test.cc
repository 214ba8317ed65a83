#include "riffle/stream/shapes/reupload.h"

#include <algorithm>
#include <cstdlib>
#include <map>
#include <set>

#include <gtest/gtest.h>

#include "riffle/stream/testing/generated_stream.h"

namespace riffle {
namespace {

constexpr const char* kAgain = " again ";

bool is_again(const Sample& sample) { return sample.key.find(kAgain) != std::string::npos; }

TEST(Reupload, OldPicturesOfTheWindowComeAgainAmongAllOthers) {
  const auto source = generated({.samples = 2000, .clip_length = 5, .labels = 3});
  const auto real = take(*source());
  const auto samples = take(*open_shapes(source, "reupload:share=0.3,window=40"));
  expect_numbered(samples);
  std::size_t of_real = 0;
  std::size_t oldest = 0;
  for (const auto& sample : samples) {
    if (!is_again(sample)) {
      ASSERT_LT(of_real, real.size());
      EXPECT_EQ(sample.key, real[of_real].key);
      EXPECT_EQ(sample.picture, real[of_real++].picture);
      continue;
    }
    const auto key = sample.key.substr(0, sample.key.find(kAgain));
    const auto number = static_cast<std::size_t>(parse_integer(key.substr(5), "item"));
    ASSERT_LT(number, of_real);
    EXPECT_LE(of_real - number, 40u);
    oldest = std::max(oldest, of_real - number);
    EXPECT_EQ(sample.label, real[number].label);
  }
  EXPECT_GT(oldest, 35u);
  EXPECT_EQ(of_real, real.size());
  const auto all = static_cast<double>(samples.size());
  EXPECT_NEAR((all - 2000) / all, 0.3, 0.03);
}

TEST(Reupload, APictureIsAlmostWhatItWas) {
  const auto samples = take(*open_shapes(
      [] { return open_stream("synthetic:?size=32&frames=1&samples=200"); }, "reupload:share=0.5"));
  std::map<std::string, Picture> known;
  int compared = 0;
  for (const auto& sample : samples) {
    if (!is_again(sample)) {
      known[sample.key] = sample.picture;
      continue;
    }
    const auto& old = known.at(sample.key.substr(0, sample.key.find(kAgain)));
    ASSERT_EQ(sample.picture.rgb.size(), old.rgb.size());
    EXPECT_NE(sample.picture, old);
    double difference = 0;
    for (std::size_t i = 0; i < old.rgb.size(); ++i) {
      difference += std::abs(old.rgb[i] - sample.picture.rgb[i]);
    }
    EXPECT_LT(difference / static_cast<double>(old.rgb.size()), 60);
    ++compared;
  }
  EXPECT_GT(compared, 100);
}

TEST(Reupload, IsAClipOfItsOwn) {
  const auto samples =
      take(*open_shapes(generated({.samples = 300, .clip_length = 5}), "reupload"));
  std::set<std::int64_t> clips;
  int again = 0;
  for (const auto& sample : samples) {
    clips.insert(sample.clip);
    again += is_again(sample);
  }
  EXPECT_EQ(clips.size(), 60u + static_cast<std::size_t>(again));
  // A still stays one, of which clips makes a clip.
  const auto clipped = take(*open_shapes(generated({.samples = 50}), "reupload,clips:length=3"));
  for (std::size_t i = 0; i < clipped.size(); ++i) {
    EXPECT_EQ(clipped[i].clip, static_cast<std::int64_t>(i / 3));
  }
  EXPECT_GT(clipped.size(), 150u);
}

}  // namespace
}  // namespace riffle

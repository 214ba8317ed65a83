#include "riffle/stream/shapes/junk.h"

#include <array>
#include <map>
#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "riffle/stream/shapes/junk_frame.h"
#include "riffle/stream/testing/generated_stream.h"

namespace riffle {
namespace {

using testing::HasSubstr;
using testing::ThrowsMessage;

bool is_junk(const Sample& sample) { return sample.label == kJunkLabel; }

double mean_level(const Picture& picture) {
  double sum = 0;
  for (const auto value : picture.rgb) sum += value;
  return sum / static_cast<double>(picture.rgb.size());
}

TEST(Junk, IsInsertedBetweenTheSamplesWhichAllComeInTheirOrder) {
  const auto source = generated({.samples = 2000, .clip_length = 5, .labels = 4});
  for (const double share : {0.05, 0.2, 0.5}) {
    SCOPED_TRACE(share);
    const auto samples = take(*open_shapes(source, cat("junk:share=", share)));
    expect_numbered(samples);
    const auto real = take(*source());
    std::size_t of_real = 0;
    for (const auto& sample : samples) {
      if (is_junk(sample)) {
        EXPECT_EQ(sample.clip, kNoClip);
        EXPECT_EQ(sample.picture.width, 12);
        EXPECT_EQ(sample.picture.height, 9);
        continue;
      }
      ASSERT_LT(of_real, real.size());
      EXPECT_EQ(sample.key, real[of_real].key);
      EXPECT_EQ(sample.clip, real[of_real].clip);
      EXPECT_EQ(sample.picture, real[of_real].picture);
      ++of_real;
    }
    EXPECT_EQ(of_real, real.size());
    const auto all = static_cast<double>(samples.size());
    EXPECT_NEAR((all - static_cast<double>(of_real)) / all, share, 0.03);
  }
}

TEST(Junk, ComesInStretchesOfTheRun) {
  const auto samples = take(*open_shapes(generated({.samples = 400}), "junk:share=0.3,run=8"));
  int stretches = 0;
  for (std::size_t i = 0; i < samples.size(); ++i) {
    if (i % 8 == 0) stretches += is_junk(samples[i]);
    EXPECT_EQ(is_junk(samples[i]), is_junk(samples[i / 8 * 8])) << i;
  }
  EXPECT_GT(stretches, 5);
}

TEST(Junk, EveryFrameDiffersFromAllOthersAndMixedHasAllKindsEqually) {
  // The same picture below, so that half-decoded frames are not told apart by it.
  const auto source = generated({.samples = 1, .width = 16, .height = 16});
  const auto samples = take(*open_shapes(source, "loop,junk:share=0.5"), 2800);
  std::map<std::string, int> kinds;
  std::set<std::string> pictures;
  int junk = 0;
  for (const auto& sample : samples) {
    if (!is_junk(sample)) continue;
    ++junk;
    ++kinds[sample.key.substr(sample.key.rfind(' ') + 1)];
    pictures.emplace(sample.picture.rgb.begin(), sample.picture.rgb.end());
  }
  EXPECT_EQ(pictures.size(), static_cast<std::size_t>(junk));
  ASSERT_EQ(kinds.size(), junk_kinds().size());
  for (const auto& [kind, count] : kinds) EXPECT_NEAR(count, junk / 7.0, 60) << kind;
}

TEST(Junk, AKindLooksAsItIsCalled) {
  const auto of_kind = [](const std::string& kind) {
    std::vector<Picture> pictures;
    for (const auto& sample : take(*open_shapes(
             generated({.samples = 60, .width = 16, .height = 16}), "junk:kind=" + kind)))
      if (is_junk(sample)) pictures.push_back(sample.picture);
    EXPECT_GT(pictures.size(), 5u);
    return pictures;
  };
  for (const auto& picture : of_kind("dark")) EXPECT_LT(mean_level(picture), 25);
  for (const auto& picture : of_kind("overexposed")) EXPECT_GT(mean_level(picture), 215);
  for (const auto& picture : of_kind("blocks")) {
    std::set<std::array<std::uint8_t, 3>> colours;
    for (int i = 0; i < 256; ++i) {
      const auto* pixel = picture.at(i % 16, i / 16);
      colours.insert({pixel[0], pixel[1], pixel[2]});
    }
    EXPECT_LE(colours.size(), 64u);
    EXPECT_GE(colours.size(), 4u);
  }
  for (const auto& picture : of_kind("gradient")) {
    // Neighbours differ little: at most the whole range over the side.
    for (int y = 0; y < 16; ++y) {
      for (int x = 1; x < 16; ++x) {
        EXPECT_NEAR(picture.at(x, y)[0], picture.at(x - 1, y)[0], 18);
      }
    }
  }
}

TEST(Junk, AHalfDecodedPictureIsTheUpperPartOfTheOneThatFollows) {
  const auto samples = take(*open_shapes(generated({.samples = 200, .width = 10, .height = 20}),
                                         "junk:kind=halfdecoded"));
  int found = 0;
  for (std::size_t i = 0; i + 1 < samples.size(); ++i) {
    if (!is_junk(samples[i]) || is_junk(samples[i + 1])) continue;
    ++found;
    const auto& half = samples[i].picture.rgb;
    const auto& whole = samples[i + 1].picture.rgb;
    const auto row = [](const auto& rgb, std::ptrdiff_t y) {
      return std::vector<std::uint8_t>(rgb.begin() + 30 * y, rgb.begin() + 30 * (y + 1));
    };
    EXPECT_EQ(row(half, 0), row(whole, 0));
    EXPECT_NE(row(half, 19), row(whole, 19));
  }
  EXPECT_GT(found, 20);
}

TEST(Junk, OtherSeedsBringOtherJunk) {
  const auto source = generated({.samples = 100});
  const auto one = take(*open_shapes(source, "junk:seed=1"));
  const auto again = take(*open_shapes(source, "junk:seed=1"));
  const auto other = take(*open_shapes(source, "junk:seed=2"));
  ASSERT_EQ(one.size(), again.size());
  for (std::size_t i = 0; i < one.size(); ++i) expect_same(one[i], again[i]);
  EXPECT_NE(keys(one), keys(other));
}

TEST(Junk, RefusesAnUnknownKindAndNothingButJunk) {
  const auto refused = [](const std::string& shape, const std::string& message) {
    EXPECT_THAT([&] { open_shapes(generated({}), shape); },
                ThrowsMessage<Error>(HasSubstr(message)));
  };
  refused("junk:kind=black", "halfdecoded");
  refused("junk:share=1", "share");
}

}  // namespace
}  // namespace riffle

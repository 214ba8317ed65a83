#include "riffle/stream/shapes/still.h"

#include <cstdlib>
#include <memory>
#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "riffle/stream/testing/generated_stream.h"

namespace riffle {
namespace {

using testing::HasSubstr;
using testing::ThrowsMessage;

bool is_still(const Sample& sample) { return sample.key.find(" still ") != std::string::npos; }

TEST(Still, TheSamePictureComesAgainForTheLengthWithNoiseAndTheOthersAllCome) {
  const auto source = generated({.samples = 1000, .clip_length = 5, .labels = 3});
  const auto real = take(*source());
  const auto samples = take(*open_shapes(source, "still:length=20,share=0.4"));
  expect_numbered(samples);
  std::size_t of_real = 0;
  for (std::size_t i = 0; i < samples.size(); ++i) {
    const auto& sample = samples[i];
    if (!is_still(sample)) {
      ASSERT_LT(of_real, real.size());
      EXPECT_EQ(sample.key, real[of_real].key);
      EXPECT_EQ(sample.clip, real[of_real].clip);
      EXPECT_EQ(sample.picture, real[of_real++].picture);
      continue;
    }
    const auto& shown = real[of_real - 1];
    EXPECT_EQ(sample.clip, shown.clip);
    EXPECT_EQ(sample.label, shown.label);
    EXPECT_NE(sample.picture, shown.picture);
    EXPECT_NE(sample.picture, samples[i - 1].picture);
    for (std::size_t p = 0; p < shown.picture.rgb.size(); ++p) {
      ASSERT_LE(std::abs(sample.picture.rgb[p] - shown.picture.rgb[p]), 12);
    }
    if (!is_still(samples[i - 1])) {
      for (std::size_t k = 0; k < 20; ++k) {
        EXPECT_EQ(samples.at(i + k).key, cat(shown.key, " still ", k));
      }
    }
  }
  EXPECT_EQ(of_real, real.size());
  const auto all = static_cast<double>(samples.size());
  EXPECT_NEAR((all - 1000) / all, 0.4, 0.12);
}

TEST(Still, APictureWithoutAClipGetsOneWithItsFrames) {
  std::set<std::int64_t> clips;
  const auto samples = take(*open_shapes(generated({.samples = 300}), "still:length=4,share=0.5"));
  for (std::size_t i = 1; i < samples.size(); ++i) {
    if (!is_still(samples[i])) continue;
    EXPECT_GE(samples[i].clip, 0);
    EXPECT_EQ(samples[i].clip, samples[i - 1].clip);
    clips.insert(samples[i].clip);
  }
  EXPECT_GT(clips.size(), 30u);
}

TEST(Still, ARepeatedPictureDoesNotKeepTheFileOfTheOneWithoutNoise) {
  class WithFile : public GeneratedStream {
   public:
    WithFile() : GeneratedStream({}) {}
    std::optional<Sample> next() override {
      auto sample = GeneratedStream::next();
      if (sample) sample->picture.file = std::make_shared<const std::vector<std::byte>>(5);
      return sample;
    }
  };
  const auto samples =
      take(*open_shapes([] { return std::make_unique<WithFile>(); }, "still:length=4,share=0.5"));
  for (const auto& sample : samples) EXPECT_EQ(sample.picture.file == nullptr, is_still(sample));
}

TEST(Still, RefusesAShareThatSoShortStretchesCannotHave) {
  EXPECT_THAT([] { open_shapes(generated({}), "still:length=2,share=0.8"); },
              ThrowsMessage<Error>(HasSubstr("larger length")));
}

}  // namespace
}  // namespace riffle

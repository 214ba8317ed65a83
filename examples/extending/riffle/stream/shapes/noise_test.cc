#include "riffle/stream/shapes/noise.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "riffle/stream/testing/generated_stream.h"

namespace riffle {
namespace {

std::unique_ptr<Stream> noisy(const std::string& shape) {
  Uri options = parse_shapes(shape).front();
  return shape_noise(options, generated({.samples = 8, .width = 32, .height = 32}));
}

TEST(Noise, ChangesEachLevelByAboutItsAmount) {
  const auto before = take(*noisy("noise:amount=0"));
  const auto after = take(*noisy("noise:amount=4"));
  double squares = 0, count = 0;
  for (std::size_t i = 0; i < before.size(); ++i) {
    for (std::size_t j = 0; j < before[i].picture.rgb.size(); ++j) {
      const double change = after[i].picture.rgb[j] - before[i].picture.rgb[j];
      squares += change * change;
      ++count;
    }
  }
  EXPECT_NEAR(std::sqrt(squares / count), 4, 0.2);
}

TEST(Noise, IsAnotherInEachPictureAndWithAnotherSeed) {
  const auto first = take(*noisy("noise:seed=1")), second = take(*noisy("noise:seed=2"));
  EXPECT_FALSE(first[0].picture == second[0].picture);
  expect_numbered(first);
}

TEST(Noise, GoesOnFromAnyPosition) {
  const auto stream = noisy("noise:amount=9");
  const auto recording = record(*stream);
  for (std::size_t at = 0; at < recording.positions.size(); ++at) {
    expect_continues(*stream, recording, at);
  }
}

}  // namespace
}  // namespace riffle

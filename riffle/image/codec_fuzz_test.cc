// Thousands of damaged files, the same on every run: nothing that comes in may crash, hang or give
// half a picture.
#include <map>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <png.h>

#include "riffle/base/testing/damage.h"
#include "riffle/image/codec.h"
#include "riffle/image/testing/generated_files.h"

namespace riffle {
namespace {

constexpr std::uint64_t kMutations = 10'000;

std::map<std::string, int> decode_damaged(std::span<const std::vector<std::byte>> originals,
                                          bool checksums) {
  std::map<std::string, int> outcomes;
  for (std::uint64_t i = 0; i < kMutations; ++i) {
    Random random(11, Purpose("damaged pictures"), i);
    auto bytes = originals[i % originals.size()];
    // Most structure is near the front.
    for (auto times = 1 + random.below(3); times > 0; --times) {
      damage(bytes, random, {.front = 200});
    }
    if (checksums && random.chance(0.7f)) repair_checksums(bytes);
    bytes.shrink_to_fit();
    DecodeFailure failure;
    const DecodeOptions options{.short_side = random.chance(0.5f) ? 8 : 0, .max_pixels = 1 << 18};
    const auto picture = decode(bytes, options, failure);
    if (picture) {
      ++outcomes["decoded"];
      EXPECT_GT(picture->width, 0);
      EXPECT_EQ(picture->rgb.size(),
                static_cast<std::size_t>(picture->width * picture->height * 3));
    } else {
      ++outcomes[failure.reason];
      EXPECT_FALSE(failure.detail.empty());
    }
  }
  return outcomes;
}

void expect_known_outcomes(const std::map<std::string, int>& outcomes) {
  for (const auto& [outcome, count] : outcomes) {
    EXPECT_THAT(outcome, testing::AnyOf("decoded", "empty", "not a picture", "truncated", "corrupt",
                                        "too large", "unsupported"));
  }
  // Damage of every sort was reached, not only the first check.
  EXPECT_GT(outcomes.at("decoded"), 20);
  EXPECT_GT(outcomes.at("truncated"), 100);
  EXPECT_GT(outcomes.at("corrupt"), 100);
}

TEST(CodecFuzz, DamagedJpegsAreDecodedOrRefused) {
  const Picture picture = generated_picture(41, 29);
  const auto exif = generated_exif(6, true);
  const std::vector<std::vector<std::byte>> originals = {
      generated_jpeg(picture, {.halved_chroma = true, .exif = exif}),
      generated_jpeg(picture, {.progressive = true, .exif = exif}),
      generated_jpeg(picture, {.colours = JpegColours::grey}),
      generated_jpeg(picture, {.colours = JpegColours::cmyk, .exif = exif}),
      generated_jpeg(picture, {.colours = JpegColours::ycck, .progressive = true})};
  expect_known_outcomes(decode_damaged(originals, false));
}

TEST(CodecFuzz, DamagedPngsAreDecodedOrRefused) {
  const auto value = [](int x, int y, int c) { return static_cast<unsigned>(x * y * 7 + c) % 4; };
  std::vector<std::vector<std::byte>> originals;
  for (const bool interlaced : {false, true}) {
    for (const int colour_type : {PNG_COLOR_TYPE_GRAY, PNG_COLOR_TYPE_PALETTE, PNG_COLOR_TYPE_RGB,
                                  PNG_COLOR_TYPE_RGB_ALPHA}) {
      const bool wide = colour_type >= PNG_COLOR_TYPE_RGB_ALPHA;
      const bool narrow =
          colour_type == PNG_COLOR_TYPE_GRAY || colour_type == PNG_COLOR_TYPE_PALETTE;
      originals.push_back(generated_png(41, 29,
                                        {.colour_type = colour_type,
                                         .depth = wide     ? 16
                                                  : narrow ? 2
                                                           : 8,
                                         .interlaced = interlaced,
                                         .transparent_colour = !wide,
                                         .exif = generated_exif(3, false)},
                                        value));
    }
  }
  expect_known_outcomes(decode_damaged(originals, true));
}

TEST(CodecFuzz, NoiseAfterARealSignatureIsRefused) {
  for (std::uint64_t i = 0; i < kMutations; ++i) {
    Random random(12, Purpose("noise"), i);
    std::vector<std::byte> bytes = encode_png(Picture(1, 1));
    if (i % 2 == 0) bytes = {std::byte{0xff}, std::byte{0xd8}, std::byte{0xff}};
    bytes.resize(std::min<std::size_t>(bytes.size(), 8));
    for (auto left = random.below(400); left > 0; --left) {
      bytes.push_back(static_cast<std::byte>(random.below(256)));
    }
    DecodeFailure failure;
    EXPECT_FALSE(decode(bytes, {}, failure));
  }
}

}  // namespace
}  // namespace riffle

#include "riffle/image/codec.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <jpeglib.h>
#include <png.h>

#include "riffle/base/error.h"
#include "riffle/image/exif.h"
#include "riffle/image/jpeg.h"
#include "riffle/image/testing/generated_files.h"

namespace riffle {
namespace {

using testing::HasSubstr;

std::optional<Picture> decode_whole(std::span<const std::byte> bytes) {
  DecodeFailure failure;
  auto picture = decode(bytes, {}, failure);
  EXPECT_TRUE(picture) << failure.reason << ": " << failure.detail;
  return picture;
}

DecodeFailure failure_of(std::span<const std::byte> bytes, const DecodeOptions& options = {}) {
  DecodeFailure failure;
  EXPECT_FALSE(decode(bytes, options, failure));
  return failure;
}

std::vector<std::byte> bytes_of(std::string_view text) {
  const auto bytes = std::as_bytes(std::span(text));
  return {bytes.begin(), bytes.end()};
}

// Returns the largest difference of a sample, or 256 if the sizes differ.
int distance(const Picture& a, const Picture& b) {
  if (a.width != b.width || a.height != b.height) return 256;
  int largest = 0;
  for (std::size_t i = 0; i < a.rgb.size(); ++i) {
    largest = std::max(largest, std::abs(int{a.rgb[i]} - int{b.rgb[i]}));
  }
  return largest;
}

double mean_distance(const Picture& a, const Picture& b) {
  if (a.width != b.width || a.height != b.height) return 256;
  double sum = 0;
  for (std::size_t i = 0; i < a.rgb.size(); ++i) sum += std::abs(int{a.rgb[i]} - int{b.rgb[i]});
  return sum / static_cast<double>(a.rgb.size());
}

TEST(Codec, PngRoundTripIsExact) {
  const Picture picture = generated_picture(31, 17);
  EXPECT_EQ(decode_whole(encode_png(picture)), picture);
}

TEST(Codec, JpegRoundTripIsClose) {
  const Picture picture = generated_picture(50, 34);
  const auto decoded = decode_whole(encode_jpeg(picture, 95));
  ASSERT_TRUE(decoded);
  EXPECT_LT(mean_distance(*decoded, picture), 2.0);
}

TEST(Codec, JpegOfEveryColourSpaceBecomesRgb) {
  const Picture picture = generated_picture(40, 24);
  for (const bool progressive : {false, true}) {
    for (const auto colours : {JpegColours::rgb, JpegColours::cmyk, JpegColours::ycck}) {
      const auto decoded =
          decode_whole(generated_jpeg(picture, {.colours = colours, .progressive = progressive}));
      ASSERT_TRUE(decoded);
      EXPECT_LE(distance(*decoded, picture), 30) << static_cast<int>(colours);
      EXPECT_LT(mean_distance(*decoded, picture), 2.0) << static_cast<int>(colours);
    }
  }
}

TEST(Codec, AJpegThatOnlyMisstatesItsVersionOrItsScanLosesNoPixel) {
  const auto good = encode_jpeg(generated_picture(40, 24), 90);
  const auto changed = [&](std::string_view marker, std::size_t at, std::byte value) {
    auto bytes = good;
    const auto found = std::ranges::search(bytes, bytes_of(marker));
    found.begin()[static_cast<std::ptrdiff_t>(at)] = value;
    EXPECT_NE(bytes, good);
    return bytes;
  };
  const auto version = changed("JFIF", 5, std::byte{7});
  // Of a scan of three channels, the number of the last coefficient.
  const auto scan = changed("\xFF\xDA", 12, std::byte{0});
  for (const auto& bytes : {version, scan}) EXPECT_EQ(decode_whole(bytes), decode_whole(good));
}

TEST(Codec, BlackInkDarkensACmykJpeg) {
  Picture expected = generated_picture(40, 24);
  const auto bytes = generated_jpeg(expected, {.colours = JpegColours::cmyk, .black = 128});
  for (auto& sample : expected.rgb) sample = static_cast<std::uint8_t>(sample * 128 / 255);
  const auto decoded = decode_whole(bytes);
  ASSERT_TRUE(decoded);
  EXPECT_LT(mean_distance(*decoded, expected), 2.0);
}

TEST(Codec, GreyJpegHasThreeEqualChannels) {
  const Picture picture = generated_picture(40, 24);
  const auto decoded = decode_whole(generated_jpeg(picture, {.colours = JpegColours::grey}));
  ASSERT_TRUE(decoded);
  for (std::size_t i = 0; i < decoded->rgb.size(); i += 3) {
    ASSERT_EQ(decoded->rgb[i], decoded->rgb[i + 1]);
    ASSERT_EQ(decoded->rgb[i], decoded->rgb[i + 2]);
    ASSERT_NEAR(decoded->rgb[i], picture.rgb[i], 25);
  }
}

TEST(Codec, ALibjpegOfAnotherVersionIsNamedAndNoPictureBlamed) {
  const auto named = testing::ThrowsMessage<Error>(HasSubstr("built for another libjpeg"));
  const JpegBuild real = jpeg_build();
  const auto file = encode_jpeg(generated_picture(8, 8), 90);
  require_jpeg();

  jpeg_build().version += 10;
  EXPECT_THAT([&] { decode_whole(file); }, named);
  EXPECT_THAT([&] { encode_jpeg(generated_picture(8, 8), 90); }, named);
  EXPECT_THAT([] { require_jpeg(); }, named);
  jpeg_build() = real;
  jpeg_build().decoder_bytes += 8;
  EXPECT_THAT([&] { decode_whole(file); }, named);
  EXPECT_THAT([] { require_jpeg(); }, named);
  jpeg_build() = real;
  jpeg_build().encoder_bytes += 8;
  EXPECT_THAT([&] { encode_jpeg(generated_picture(8, 8), 90); }, named);
  EXPECT_THAT([] { require_jpeg(); }, named);
  jpeg_build() = real;
  require_jpeg();
}

TEST(Codec, JpegIsTurnedByItsExifOrientation) {
  const Picture stored = generated_picture(40, 24);
  for (int orientation = 1; orientation <= 8; ++orientation) {
    const auto decoded = decode_whole(
        generated_jpeg(stored, {.exif = generated_exif(orientation, orientation % 2 == 0)}));
    ASSERT_TRUE(decoded);
    EXPECT_LT(mean_distance(*decoded, turn_upright(stored, orientation)), 2.0) << orientation;
  }
}

TEST(Codec, PngIsTurnedByItsExifOrientation) {
  const Picture stored = generated_picture(9, 6);
  const auto bytes =
      generated_png(9, 6, {.colour_type = PNG_COLOR_TYPE_RGB, .exif = generated_exif(6, false)},
                    [&](int x, int y, int c) { return stored.at(x, y)[c]; });
  EXPECT_EQ(decode_whole(bytes), turn_upright(stored, 6));
}

TEST(Codec, LargeJpegIsDecodedAtAReducedScaleNeverBelowTheShortSide) {
  const Picture picture = generated_picture(400, 300);
  const auto bytes = encode_jpeg(picture);
  DecodeFailure failure;
  struct Case {
    int short_side, height;
  };
  for (const auto& [short_side, height] :
       {Case{1, 38}, Case{37, 38}, Case{38, 75}, Case{75, 75}, Case{76, 150}, Case{150, 150},
        Case{151, 300}, Case{300, 300}, Case{1000, 300}}) {
    const auto decoded = decode(bytes, {.short_side = short_side}, failure);
    ASSERT_TRUE(decoded);
    EXPECT_EQ(decoded->height, height) << "short side " << short_side;
    EXPECT_NEAR(decoded->width * 3.0 / 4, decoded->height, 1.0);
  }
}

TEST(Codec, PngOfEveryKindBecomesEightBitRgb) {
  constexpr int kWidth = 19, kHeight = 11;
  struct Case {
    int colour_type, depth;
    bool transparent_colour;
  };
  const Case cases[] = {
      {PNG_COLOR_TYPE_GRAY, 1, false},        {PNG_COLOR_TYPE_GRAY, 2, false},
      {PNG_COLOR_TYPE_GRAY, 4, true},         {PNG_COLOR_TYPE_GRAY, 8, true},
      {PNG_COLOR_TYPE_GRAY, 16, false},       {PNG_COLOR_TYPE_GRAY_ALPHA, 8, false},
      {PNG_COLOR_TYPE_GRAY_ALPHA, 16, false}, {PNG_COLOR_TYPE_PALETTE, 1, false},
      {PNG_COLOR_TYPE_PALETTE, 2, true},      {PNG_COLOR_TYPE_PALETTE, 4, false},
      {PNG_COLOR_TYPE_PALETTE, 8, true},      {PNG_COLOR_TYPE_RGB, 8, false},
      {PNG_COLOR_TYPE_RGB, 8, true},          {PNG_COLOR_TYPE_RGB, 16, false},
      {PNG_COLOR_TYPE_RGB_ALPHA, 8, false},   {PNG_COLOR_TYPE_RGB_ALPHA, 16, false}};
  for (const auto& [colour_type, depth, transparent_colour] : cases) {
    for (const bool interlaced : {false, true}) {
      const unsigned most = (1u << depth) - 1;
      const auto value = [&](int x, int y, int c) {
        return static_cast<unsigned>(x * 2654 + y * 977 + c * 7919) * 31 & most;
      };
      const auto decoded = decode_whole(generated_png(kWidth, kHeight,
                                                      {.colour_type = colour_type,
                                                       .depth = depth,
                                                       .interlaced = interlaced,
                                                       .transparent_colour = transparent_colour},
                                                      value));
      ASSERT_TRUE(decoded);
      ASSERT_EQ(decoded->width, kWidth);
      ASSERT_EQ(decoded->height, kHeight);
      for (int y = 0; y < kHeight; ++y) {
        for (int x = 0; x < kWidth; ++x) {
          for (int c = 0; c < 3; ++c) {
            const bool colour = (colour_type & PNG_COLOR_MASK_COLOR) != 0;
            const unsigned stored = value(x, y, colour ? c : 0);
            int expected = static_cast<int>((stored * 255.0 / most) + 0.5);
            if (colour_type == PNG_COLOR_TYPE_PALETTE) {
              const unsigned i = value(x, y, 0);
              expected = static_cast<int>(c == 0 ? i : c == 1 ? 255 - i : 7 * i % 256);
            }
            ASSERT_EQ(decoded->at(x, y)[c], expected)
                << "colour type " << colour_type << ", depth " << depth << ", interlaced "
                << interlaced << ", at " << x << ", " << y << ", channel " << c;
          }
        }
      }
    }
  }
}

TEST(Codec, WhatIsNotAPictureIsNamed) {
  EXPECT_EQ(failure_of({}).reason, "empty");
  EXPECT_EQ(failure_of(bytes_of("hello")).reason, "not a picture");
  const auto page = failure_of(bytes_of("<!DOCTYPE html><html>404</html>"));
  EXPECT_EQ(page.reason, "not a picture");
  EXPECT_THAT(page.detail, HasSubstr("HTML"));
}

TEST(Codec, EveryTruncationOfAJpegFails) {
  for (const bool progressive : {false, true}) {
    const auto whole = generated_jpeg(generated_picture(40, 24),
                                      {.progressive = progressive, .halved_chroma = true});
    for (std::size_t size = 3; size + 2 < whole.size(); ++size) {
      EXPECT_EQ(failure_of(std::span(whole).first(size)).reason, "truncated") << size << " bytes";
    }
  }
}

TEST(Codec, EveryTruncationOfAPngFails) {
  const auto whole = encode_png(generated_picture(40, 24));
  for (std::size_t size = 8; size < whole.size(); ++size) {
    EXPECT_EQ(failure_of(std::span(whole).first(size)).reason, "truncated") << size << " bytes";
  }
}

TEST(Codec, PaddingBeforeTheEndOfAJpegIsHarmless) {
  const Picture picture = generated_picture(40, 24);
  auto bytes = encode_jpeg(picture);
  bytes.insert(bytes.end() - 2, 5, std::byte{0});
  EXPECT_TRUE(decode_whole(bytes));
  bytes.insert(bytes.end() - 2, 500, std::byte{0});
  EXPECT_EQ(failure_of(bytes).reason, "corrupt");
}

TEST(Codec, DamageInsideAJpegIsCorrupt) {
  auto bytes = encode_jpeg(generated_picture(300, 200));
  // An end marker in the middle of the coded blocks, with the rest of them after it.
  const std::size_t middle = bytes.size() * 3 / 4;
  bytes[middle] = std::byte{0xff};
  bytes[middle + 1] = std::byte{0xd9};
  EXPECT_EQ(failure_of(bytes).reason, "corrupt");
}

TEST(Codec, AJpegWithEndlessScansIsGivenUp) {
  const auto bytes = generated_jpeg(generated_picture(40, 24), {.scan_per_channel = true});
  EXPECT_TRUE(decode_whole(bytes));
  // The last scan, from its marker to the end of the picture, again and again.
  const std::byte marker[] = {std::byte{0xff}, std::byte{0xda}};
  const auto scan = std::find_end(bytes.begin(), bytes.end(), marker, marker + 2);
  std::vector<std::byte> endless(bytes.begin(), scan);
  for (int i = 0; i < 200; ++i) endless.insert(endless.end(), scan, bytes.end() - 2);
  endless.insert(endless.end(), bytes.end() - 2, bytes.end());
  const auto failure = failure_of(endless);
  EXPECT_EQ(failure.reason, "corrupt");
  EXPECT_THAT(failure.detail, HasSubstr("scans"));
}

TEST(Codec, DamageInsideAPngIsCorrupt) {
  auto bytes = encode_png(generated_picture(64, 64));
  bytes[bytes.size() / 2] ^= std::byte{0x10};
  EXPECT_EQ(failure_of(bytes).reason, "corrupt");
}

TEST(Codec, MorePixelsThanAllowedAreRefused) {
  const Picture picture = generated_picture(40, 24);
  for (const auto& bytes : {encode_png(picture), encode_jpeg(picture)}) {
    DecodeFailure failure;
    EXPECT_TRUE(decode(bytes, {.max_pixels = 960}, failure));
    failure = failure_of(bytes, {.max_pixels = 959});
    EXPECT_EQ(failure.reason, "too large");
    EXPECT_THAT(failure.detail, HasSubstr("40 x 24"));
  }
}

// The header of a 1 x 1 PNG changed to claim other sides.
std::vector<std::byte> png_claiming(std::uint32_t width, std::uint32_t height) {
  auto bytes = encode_png(Picture(1, 1));
  for (std::size_t i = 0; i < 4; ++i) {
    bytes[16 + i] = static_cast<std::byte>(width >> (24 - 8 * i));
    bytes[20 + i] = static_cast<std::byte>(height >> (24 - 8 * i));
  }
  repair_checksums(bytes);
  return bytes;
}

// The frame header of a small JPEG changed to claim other sides.
std::vector<std::byte> jpeg_claiming(unsigned width, unsigned height) {
  auto bytes = encode_jpeg(Picture(8, 8));
  for (std::size_t i = 0; i + 9 < bytes.size(); ++i) {
    if (bytes[i] != std::byte{0xff} || bytes[i + 1] != std::byte{0xc0}) continue;
    bytes[i + 5] = static_cast<std::byte>(height >> 8);
    bytes[i + 6] = static_cast<std::byte>(height);
    bytes[i + 7] = static_cast<std::byte>(width >> 8);
    bytes[i + 8] = static_cast<std::byte>(width);
    break;
  }
  return bytes;
}

TEST(Codec, HostileClaimsAreRefusedBeforeMemoryIsTaken) {
  EXPECT_EQ(failure_of(png_claiming(100'000, 100'000)).reason, "too large");
  EXPECT_EQ(failure_of(png_claiming(0x7fffffff, 0x7fffffff)).reason, "too large");
  EXPECT_EQ(failure_of(jpeg_claiming(65'000, 65'000)).reason, "too large");
  EXPECT_EQ(failure_of(png_claiming(1, 100'000'000)).reason, "too large");
  EXPECT_EQ(failure_of(png_claiming(65'536, 1)).reason, "too large");
  EXPECT_TRUE(decode_whole(encode_png(Picture(1, 65'535))));
  // Within the limit, but more than these few bytes can hold.
  EXPECT_THAT(failure_of(png_claiming(9000, 9000)).detail, HasSubstr("9000 x 9000"));
  EXPECT_THAT(failure_of(jpeg_claiming(9000, 9000)).detail, HasSubstr("9000 x 9000"));
}

TEST(Codec, APictureWithoutPixelsCannotBeWritten) {
  EXPECT_THROW(encode_png(Picture()), Error);
  EXPECT_THROW(encode_jpeg(Picture()), Error);
  EXPECT_THROW(encode_jpeg(Picture(70'000, 1)), Error);
  EXPECT_THROW(encode_jpeg(Picture(1, 1), 0), std::logic_error);
}

}  // namespace
}  // namespace riffle

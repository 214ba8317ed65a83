#include "riffle/image/heif.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "riffle/base/random.h"

#ifdef RIFFLE_HEIF
#include <libheif/heif.h>
#endif

namespace riffle {
namespace {

TEST(Heif, IsToldByItsBeginning) {
  const auto bytes = [](std::string_view text) { return std::as_bytes(std::span(text)); };
  using namespace std::string_view_literals;
  EXPECT_TRUE(
      is_heif(bytes("\0\0\0\x18"
                    "ftypheic....."sv)));
  EXPECT_TRUE(
      is_heif(bytes("\0\0\0\x18"
                    "ftypavif....."sv)));
  EXPECT_FALSE(
      is_heif(bytes("\0\0\0\x18"
                    "ftypisom....."sv)));
  EXPECT_FALSE(
      is_heif(bytes("\0\0\0\x18"
                    "ftyp"sv)));
}

#ifdef RIFFLE_HEIF

constexpr int kWidth = 64, kHeight = 48;

// Red on the left and blue on the right, by libheif's own encoder; empty if it has none.
std::vector<std::byte> encoded_halves(heif_compression_format format) {
  heif_context* context = heif_context_alloc();
  heif_encoder* encoder = nullptr;
  std::vector<std::byte> bytes;
  if (heif_context_get_encoder_for_format(context, format, &encoder).code == heif_error_Ok) {
    heif_image* image = nullptr;
    heif_image_create(kWidth, kHeight, heif_colorspace_RGB, heif_chroma_interleaved_RGB, &image);
    heif_image_add_plane(image, heif_channel_interleaved, kWidth, kHeight, 8);
    int stride = 0;
    std::uint8_t* plane = heif_image_get_plane(image, heif_channel_interleaved, &stride);
    for (int y = 0; y < kHeight; ++y) {
      for (int x = 0; x < kWidth; ++x) {
        std::uint8_t* pixel = plane + y * stride + 3 * x;
        pixel[0] = x < kWidth / 2 ? 200 : 10;
        pixel[1] = 40;
        pixel[2] = x < kWidth / 2 ? 10 : 200;
      }
    }
    heif_encoder_set_lossy_quality(encoder, 90);
    heif_context_encode_image(context, image, encoder, nullptr, nullptr);
    heif_writer writer{};
    writer.writer_api_version = 1;
    writer.write = [](heif_context*, const void* data, std::size_t size, void* to) {
      const auto* first = static_cast<const std::byte*>(data);
      static_cast<std::vector<std::byte>*>(to)->assign(first, first + size);
      return heif_error{heif_error_Ok, heif_suberror_Unspecified, ""};
    };
    heif_context_write(context, &writer, &bytes);
    heif_image_release(image);
    heif_encoder_release(encoder);
  }
  heif_context_free(context);
  return bytes;
}

class HeifPictures : public testing::TestWithParam<heif_compression_format> {
 protected:
  void SetUp() override {
    if (bytes_.empty()) GTEST_SKIP() << "this libheif does not encode the format";
  }
  const std::vector<std::byte> bytes_ = encoded_halves(GetParam());
};
INSTANTIATE_TEST_SUITE_P(Both, HeifPictures,
                         testing::Values(heif_compression_HEVC, heif_compression_AV1),
                         [](const auto& format) {
                           return format.param == heif_compression_AV1 ? "Avif" : "Heic";
                         });

TEST_P(HeifPictures, AreDecoded) {
  DecodeFailure failure;
  const auto picture = decode(bytes_, {}, failure);
  ASSERT_TRUE(picture) << failure.detail;
  EXPECT_EQ(picture->width, kWidth);
  EXPECT_EQ(picture->height, kHeight);
  for (const auto& [x, red, blue] : {std::tuple(10, 200, 10), std::tuple(54, 10, 200)}) {
    EXPECT_NEAR(picture->at(x, 24)[0], red, 12);
    EXPECT_NEAR(picture->at(x, 24)[2], blue, 12);
  }
}

TEST_P(HeifPictures, OfTooManyPixelsAreRefused) {
  DecodeFailure failure;
  EXPECT_FALSE(decode(bytes_, {.max_pixels = kWidth * kHeight - 1}, failure));
  EXPECT_EQ(failure.reason, "too large");
}

TEST_P(HeifPictures, ThatAreDamagedOrCutOffAreFailuresOrPictures) {
  for (std::uint64_t trial = 0; trial < 200; ++trial) {
    Random random(1, Purpose("heif"), trial);
    auto bytes = bytes_;
    if (random.chance(0.5f)) bytes.resize(random.below(bytes.size()));
    for (int i = 0; i < 4 && !bytes.empty(); ++i) {
      bytes[random.below(bytes.size())] = static_cast<std::byte>(random.below(256));
    }
    DecodeFailure failure;
    const auto picture = decode(bytes, {.max_pixels = 1 << 20}, failure);
    EXPECT_NE(picture.has_value(), !failure.reason.empty());
  }
}

#else

TEST(Heif, WithoutTheLibraryTheFailureSaysWhatToInstall) {
  DecodeFailure failure;
  EXPECT_FALSE(decode_heif({}, {}, failure));
  EXPECT_EQ(failure.reason, "unsupported");
  EXPECT_THAT(failure.detail, testing::HasSubstr("libheif-dev"));
}

#endif

}  // namespace
}  // namespace riffle

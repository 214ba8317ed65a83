#include "riffle/stream/video/still_picture.h"

#include <array>
#include <cstdint>
#include <cstdlib>
#include <map>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "riffle/base/file.h"
#include "riffle/base/testing/temp_folder.h"
#include "riffle/base/text.h"
#include "riffle/image/exif.h"
#include "riffle/image/libraries.h"
#include "riffle/stream/decoding.h"
#include "riffle/stream/stream.h"

namespace riffle {
namespace {

namespace fs = std::filesystem;

// What an empty HEIC file is to a build with libheif, and to one without.
std::string heif_failure() {
  for (const Library& library : image_libraries()) {
    if (library.name == "libheif") return library.version.empty() ? "unsupported" : "corrupt";
  }
  return "";
}

// One picture in all formats that Pillow writes, and some that are cut off or lie.
class StillPictureTest : public TempFolder {
 protected:
  void SetUp() override {
    const bool made = make(
        "import os\n"
        "from PIL import Image\n"
        "picture = Image.new('RGB', (40, 24), (200, 40, 10))\n"
        "picture.paste((10, 40, 200), (20, 0, 40, 24))\n"
        "for name in ['a.png', 'a.tiff', 'a.bmp', 'a.gif']: picture.save(name)\n"
        "picture.save('a.webp', lossless=True)\n"
        "picture.save('lossy.webp', quality=95)\n"
        "picture.save('packed.tif', compression='tiff_lzw')\n"
        "picture.save('plain', format='WEBP', lossless=True)\n"
        "os.mkdir('tagged')\n"
        "tags = {271: 'A camera', 305: 'A program', 65000: 7}\n"
        "for turn in range(1, 9): picture.save(f'tagged/{turn}.tiff', tiffinfo=tags | {274: "
        "turn})\n"
        "os.mkdir('moving')\n"
        "picture.save('moving/a.webp', save_all=True, append_images=[picture.rotate(180)])\n");
    if (!made) GTEST_SKIP() << "needs Pillow in " << RIFFLE_PYTHON << " (scripts/setup --peers)";
  }
  // Runs a script of Python in the folder. Returns whether it did well.
  bool make(const std::string& script) const {
    write_atomically(folder_ / "make.py", script);
    const std::string command =
        cat("cd '", folder_.string(), "' && '", RIFFLE_PYTHON, "' make.py 2>/dev/null");
    return std::system(command.c_str()) == 0;
  }
  Decoded decoded(const std::string& name, int short_side = 0) const {
    return decode(read_bytes(folder_ / name), {.options = {.short_side = short_side}});
  }
};

TEST_F(StillPictureTest, AllKindsGiveThePictureThatPngGives) {
  const auto expected = decoded("a.png");
  ASSERT_TRUE(expected.picture);
  for (const char* name : {"a.tiff", "a.bmp", "a.gif", "a.webp", "packed.tif", "plain"}) {
    const auto got = decoded(name);
    ASSERT_TRUE(got.picture) << name << ": " << got.failure.detail;
    EXPECT_EQ(*got.picture, *expected.picture) << name;
  }
  const auto lossy = decoded("lossy.webp");
  ASSERT_TRUE(lossy.picture) << lossy.failure.detail;
  for (const auto& [x, red] : {std::pair{5, 200}, std::pair{35, 10}}) {
    EXPECT_NEAR(lossy.picture->at(x, 12)[0], red, 6);
  }
}

TEST_F(StillPictureTest, ATiffIsTurnedUprightWhateverElseItsTagsSay) {
  const auto expected = decoded("a.png");
  ASSERT_TRUE(expected.picture);
  for (int orientation = 1; orientation <= 8; ++orientation) {
    const auto got = decoded(cat("tagged/", orientation, ".tiff"));
    ASSERT_TRUE(got.picture) << orientation << ": " << got.failure.detail;
    EXPECT_EQ(*got.picture, turn_upright(*expected.picture, orientation)) << orientation;
  }
}

TEST_F(StillPictureTest, ATiffThatFfmpegCannotDecodeIsUnsupportedNeitherBlackNorCorrupt) {
  ASSERT_TRUE(make(
      "import struct\n"
      "from PIL import Image\n"
      "for mode in ['RGB', 'L']:\n"
      "    Image.new(mode, (40, 24), 'white').save(f'{mode}.tiff', compression='jpeg')\n"
      "plain = open('a.tiff', 'rb').read()\n"
      "tiles, zstd = bytearray(plain), bytearray(plain)\n"
      "directory = struct.unpack_from('<I', plain, 4)[0]\n"
      "for entry in range(directory + 2, directory + 2 + 12 * plain[directory], 12):\n"
      "    tag = struct.unpack_from('<H', plain, entry)[0]\n"
      "    if tag == 278: struct.pack_into('<H', tiles, entry, 322)\n"
      "    if tag == 259: struct.pack_into('<H', zstd, entry + 8, 50000)\n"
      "open('tiles.tiff', 'wb').write(tiles)\n"
      "open('zstd.tiff', 'wb').write(zstd)\n"
      "for mode in ['F', 'I', 'LAB']: Image.new(mode, (40, 24)).save(f'{mode}.tiff')\n"
      "sample_format = 339\n"
      "for mode, kinds in [('L', 2), ('LA', (2, 2)), ('RGB', (3, 3, 3)), ('RGB', (1, 1, 2))]:\n"
      "    tags = {sample_format: kinds}\n"
      "    Image.new(mode, (40, 24)).save(f'{mode}_{kinds}.tiff', tiffinfo=tags)\n"));
  constexpr const char* kNotWhole = "samples that are not whole numbers from 0";
  for (const auto& [name, why] :
       {std::pair{"RGB", "JPEG inside"}, std::pair{"L", "JPEG inside"}, std::pair{"tiles", "tiles"},
        std::pair{"zstd", "compression 50000"}, std::pair{"F", "samples of 32 bits"},
        std::pair{"I", "samples of 32 bits"}, std::pair{"LAB", "CIELAB colours"},
        std::pair{"L_2", kNotWhole}, std::pair{"LA_(2, 2)", kNotWhole},
        std::pair{"RGB_(3, 3, 3)", kNotWhole}, std::pair{"RGB_(1, 1, 2)", kNotWhole}}) {
    const auto failure = decoded(cat(name, ".tiff")).failure;
    EXPECT_EQ(failure.reason, "unsupported") << name;
    EXPECT_EQ(failure.detail, cat("a TIFF with ", why));
  }
}

TEST_F(StillPictureTest, ATiffMaySayThatItsSamplesAreWholeNumbers) {
  ASSERT_TRUE(
      make("from PIL import Image\n"
           "for kind in [1, 4]:\n"
           "    tags = {339: (kind, kind, kind)}\n"
           "    Image.open('a.png').save(f'kind{kind}.tiff', tiffinfo=tags)\n"
           "kind = bytearray(open('kind1.tiff', 'rb').read())\n"
           "at = kind.index((339).to_bytes(2, 'little') + (3).to_bytes(2, 'little')) + 8\n"
           "kind[at:at + 4] = (2 ** 32 - 3).to_bytes(4, 'little')\n"
           "open('nowhere.tiff', 'wb').write(kind)\n"));
  const auto expected = decoded("a.png");
  ASSERT_TRUE(expected.picture);
  for (const char* name : {"kind1.tiff", "kind4.tiff", "nowhere.tiff"}) {
    const auto got = decoded(name);
    ASSERT_TRUE(got.picture) << name << ": " << got.failure.detail;
    EXPECT_EQ(*got.picture, *expected.picture) << name;
  }
}

TEST_F(StillPictureTest, ATiffHasTheLevelsThatPngHas) {
  ASSERT_TRUE(
      make("from PIL import Image\n"
           "grey, grey16 = Image.new('L', (40, 24)), Image.new('I;16', (40, 24))\n"
           "for i, level in enumerate([0, 64, 128, 255]):\n"
           "    grey.paste(level, (10 * i, 0, 10 * i + 10, 24))\n"
           "    grey16.paste(level * 257, (10 * i, 0, 10 * i + 10, 24))\n"
           "grey.save('grey.png')\n"
           "grey.save('grey.tiff')\n"
           "grey16.save('grey16.tiff')\n"
           "Image.merge('LA', [grey, Image.new('L', (40, 24), 255)]).save('alpha.tiff')\n"
           "Image.merge('RGB', [grey] * 3).convert('YCbCr').save('luma.tiff')\n"));
  const auto expected = decoded("grey.png");
  ASSERT_TRUE(expected.picture);
  for (const char* name : {"grey.tiff", "grey16.tiff", "alpha.tiff", "luma.tiff"}) {
    for (const int short_side : {0, 12}) {
      const auto got = decoded(name, short_side);
      ASSERT_TRUE(got.picture) << name << ": " << got.failure.detail;
      const int part = short_side == 0 ? 1 : 2;
      for (const int x : {4, 14, 24, 34}) {
        EXPECT_NEAR(got.picture->at(x / part, 4)[0], expected.picture->at(x, 8)[0], 1)
            << name << " to " << short_side << ", " << x;
      }
    }
  }
}

TEST_F(StillPictureTest, ALargeTiffOfLumaAndChromaHasTheColoursOfASmallOne) {
  ASSERT_TRUE(
      make("from PIL import Image\n"
           "Image.new('RGB', (8, 800), (200, 40, 10)).convert('YCbCr').save('high.tiff')\n"));
  const auto got = decoded("high.tiff");
  ASSERT_TRUE(got.picture) << got.failure.detail;
  for (const int c : {0, 1, 2}) {
    EXPECT_NEAR(got.picture->at(4, 400)[c], (std::array{200, 40, 10}[static_cast<std::size_t>(c)]),
                2);
  }
}

TEST_F(StillPictureTest, AnAnimatedWebpIsUnsupportedNotCorrupt) {
  EXPECT_EQ(decoded("moving/a.webp").failure.reason, "unsupported");
}

TEST_F(StillPictureTest, WhatIsCutOffIsAFailure) {
  for (const char* name : {"a.tiff", "a.bmp", "a.gif", "a.webp", "lossy.webp", "packed.tif"}) {
    const auto bytes = read_bytes(folder_ / name);
    for (const std::size_t kept : {bytes.size() / 2, std::size_t{20}}) {
      const auto got = decode(std::span(bytes).first(kept), {});
      if (got.picture) {
        EXPECT_EQ(got.picture->width, 40) << name;  // a decoder may fill in what is missing
      } else {
        EXPECT_FALSE(got.failure.reason.empty()) << name;
      }
    }
  }
}

TEST_F(StillPictureTest, APictureOfTooManyPixelsIsRefusedBeforeItIsDecoded) {
  Decoding few;
  few.options.max_pixels = 500;
  for (const char* name : {"a.tiff", "a.bmp", "a.gif", "a.webp", "lossy.webp"}) {
    EXPECT_FALSE(decode(read_bytes(folder_ / name), few).picture) << name;
  }
}

TEST_F(StillPictureTest, AFolderOfAllKindsIsReadAndOthersAreCounted) {
  write_atomically(folder_ / "phone.heic", std::string("\0\0\0\x18"
                                                       "ftypheic....",
                                                       16));
  write_atomically(folder_ / "notes", "text without an ending");
  write_atomically(folder_ / "notes.txt", "text");
  const auto stream = open_stream("folder:" + folder_.string());
  int samples = 0;
  while (stream->next()) ++samples;
  EXPECT_EQ(samples, 16);
  std::map<std::string, std::int64_t> skipped{{"unsupported", 1}, {"not a picture", 1}};
  ++skipped[heif_failure()];
  EXPECT_EQ(stream->skipped(), skipped);
}

}  // namespace
}  // namespace riffle

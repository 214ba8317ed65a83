#include "riffle/stream/video/still_picture.h"

#include <cstdlib>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "riffle/base/file.h"
#include "riffle/base/testing/temp_folder.h"
#include "riffle/base/text.h"
#include "riffle/image/libraries.h"
#include "riffle/stream/decoding.h"
#include "riffle/stream/stream.h"

namespace riffle {
namespace {

namespace fs = std::filesystem;

// One picture in all formats that Pillow writes, and some that are cut off or lie.
// What an empty HEIC file is to a build with libheif, and to one without.
std::string heif_failure() {
  for (const Library& library : image_libraries()) {
    if (library.name == "libheif") return library.version.empty() ? "unsupported" : "corrupt";
  }
  return "";
}

class StillPictureTest : public TempFolder {
 protected:
  void SetUp() override {
    const std::string script =
        "from PIL import Image\n"
        "picture = Image.new('RGB', (40, 24), (200, 40, 10))\n"
        "picture.paste((10, 40, 200), (20, 0, 40, 24))\n"
        "for name in ['a.png', 'a.tiff', 'a.bmp', 'a.gif']: picture.save(name)\n"
        "picture.save('a.webp', lossless=True)\n"
        "picture.save('lossy.webp', quality=95)\n"
        "picture.save('packed.tif', compression='tiff_lzw')\n"
        "picture.save('plain', format='WEBP', lossless=True)\n";
    write_atomically(folder_ / "make.py", script);
    const std::string command =
        cat("cd '", folder_.string(), "' && '", RIFFLE_PYTHON, "' make.py 2>/dev/null");
    if (std::system(command.c_str()) != 0) {
      GTEST_SKIP() << "needs Pillow in " << RIFFLE_PYTHON << " (scripts/setup --peers)";
    }
  }
  Decoded decoded(const std::string& name) const { return decode(read_bytes(folder_ / name), {}); }
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
  EXPECT_EQ(samples, 8);
  EXPECT_THAT(stream->skipped(), testing::UnorderedElementsAre(testing::Pair(heif_failure(), 1),
                                                               testing::Pair("not a picture", 1)));
}

}  // namespace
}  // namespace riffle

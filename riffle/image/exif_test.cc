#include "riffle/image/exif.h"

#include <gtest/gtest.h>

#include "riffle/base/random.h"
#include "riffle/image/testing/generated_files.h"

namespace riffle {
namespace {

// The EXIF standard says where the stored row 0 and column 0 are in the picture as seen.
enum Side { top, right, bottom, left };
struct Layout {
  Side row0, column0;
};
constexpr Layout kLayouts[] = {{top, left}, {top, right}, {bottom, right}, {bottom, left},
                               {left, top}, {right, top}, {right, bottom}, {left, bottom}};

// Returns what a camera held that way stores of a scene.
Picture stored_as(const Picture& seen, const Layout& layout) {
  const bool on_its_side = layout.row0 == left || layout.row0 == right;
  Picture stored(on_its_side ? seen.height : seen.width, on_its_side ? seen.width : seen.height);
  for (int y = 0; y < stored.height; ++y) {
    for (int x = 0; x < stored.width; ++x) {
      int seen_x = 0, seen_y = 0;
      const auto step = [&](Side from, int distance) {
        if (from == top) seen_y = distance;
        if (from == bottom) seen_y = seen.height - 1 - distance;
        if (from == left) seen_x = distance;
        if (from == right) seen_x = seen.width - 1 - distance;
      };
      step(layout.row0, y);
      step(layout.column0, x);
      std::copy_n(seen.at(seen_x, seen_y), 3, stored.at(x, y));
    }
  }
  return stored;
}

TEST(Exif, EveryOrientationIsTurnedUpright) {
  const Picture seen = generated_picture(7, 5);
  for (int orientation = 1; orientation <= 8; ++orientation) {
    EXPECT_EQ(seen, turn_upright(stored_as(seen, kLayouts[orientation - 1]), orientation))
        << "orientation " << orientation;
  }
}

TEST(Exif, OrientationIsReadInBothByteOrders) {
  for (int orientation = 1; orientation <= 8; ++orientation) {
    EXPECT_EQ(exif_orientation(generated_exif(orientation, true)), orientation);
    EXPECT_EQ(exif_orientation(generated_exif(orientation, false)), orientation);
  }
}

TEST(Exif, OrientationOutsideTheStandardCountsAsUpright) {
  EXPECT_EQ(exif_orientation(generated_exif(0, true)), 1);
  EXPECT_EQ(exif_orientation(generated_exif(9, false)), 1);
}

TEST(Exif, EveryTruncationCountsAsUprightOrIsReadBeforeTheCut) {
  const auto whole = generated_exif(6, true);
  for (std::size_t size = 0; size < whole.size(); ++size) {
    // A copy of its own, so that a sanitizer sees the first byte read beyond it.
    const std::vector<std::byte> part(whole.begin(),
                                      whole.begin() + static_cast<std::ptrdiff_t>(size));
    const int orientation = exif_orientation(part);
    EXPECT_TRUE(orientation == 1 || (orientation == 6 && size > 30)) << size << " bytes";
  }
}

TEST(Exif, RandomDamageNeverReadsOutside) {
  for (std::uint64_t i = 0; i < 20000; ++i) {
    Random random(1, Purpose("exif damage"), i);
    auto block = generated_exif(6, random.chance(0.5f));
    for (int k = 0; k < 3; ++k) {
      block[random.below(block.size())] = static_cast<std::byte>(random.below(256));
    }
    block.resize(1 + random.below(block.size()));
    block.shrink_to_fit();
    const int orientation = exif_orientation(block);
    ASSERT_GE(orientation, 1);
    ASSERT_LE(orientation, 8);
  }
}

}  // namespace
}  // namespace riffle

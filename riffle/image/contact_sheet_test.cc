#include "riffle/image/contact_sheet.h"

#include <vector>

#include <gtest/gtest.h>

namespace riffle {
namespace {

Picture flat(int width, int height, std::uint8_t level) {
  Picture picture(width, height);
  std::fill(picture.rgb.begin(), picture.rgb.end(), level);
  return picture;
}

TEST(ContactSheet, ShowsPicturesInReadingOrderWithABorder) {
  std::vector<Picture> pictures;
  for (int i = 0; i < 5; ++i)
    pictures.push_back(flat(10 + i, 20, static_cast<std::uint8_t>(100 + i)));
  const Picture sheet = contact_sheet(pictures, 3, 8);
  EXPECT_EQ(sheet.width, 3 * 10 + 2);
  EXPECT_EQ(sheet.height, 2 * 10 + 2);
  for (int i = 0; i < 5; ++i) {
    EXPECT_EQ(sheet.at(2 + i % 3 * 10, 2 + i / 3 * 10)[0], 100 + i);
    EXPECT_EQ(sheet.at(9 + i % 3 * 10, 9 + i / 3 * 10)[2], 100 + i);
  }
  const auto ground = *sheet.at(0, 0);
  EXPECT_LT(ground, 100);
  EXPECT_EQ(*sheet.at(11, 5), ground);
  EXPECT_EQ(*sheet.at(25, 15), ground);
}

TEST(ContactSheet, IsNoWiderThanItsPictures) {
  const std::vector<Picture> pictures(2, flat(4, 4, 200));
  EXPECT_EQ(contact_sheet(pictures, 10, 4).width, 2 * 6 + 2);
}

TEST(ContactSheet, OfNothingIsOneBareCell) {
  const Picture sheet = contact_sheet({}, 4, 16);
  EXPECT_EQ(sheet.width, 20);
  EXPECT_EQ(sheet.height, 20);
}

}  // namespace
}  // namespace riffle

#include "riffle/base/checksum.h"

#include <string>

#include <gtest/gtest.h>

namespace riffle {
namespace {

TEST(Checksum, GivesTheKnownValues) {
  EXPECT_EQ(checksum(""), 0xEF46DB3751D8E999u);
  EXPECT_EQ(checksum("a"), 0xD24EC4F1A98C6E5Bu);
  EXPECT_EQ(checksum("abc"), 0x44BC2CF5AD770999u);
  EXPECT_EQ(checksum("Nobody inspects the spammish repetition"), 0xFBCEA83C8A378BF1u);
  EXPECT_EQ(Checksum().value(), checksum(""));
}

TEST(Checksum, DoesNotDependOnHowTheBytesAreCut) {
  std::string text;
  for (int i = 0; i < 200; ++i) text.push_back(static_cast<char>(i * 37));
  for (const std::size_t piece : {1, 3, 31, 32, 33, 64, 199}) {
    Checksum sum;
    for (std::size_t at = 0; at < text.size(); at += piece) {
      sum.add(std::as_bytes(std::span(text).subspan(at, std::min(piece, text.size() - at))));
    }
    EXPECT_EQ(sum.value(), checksum(text)) << piece;
  }
}

TEST(Checksum, EverySingleBitCounts) {
  const std::string text(77, 'x');
  for (std::size_t bit = 0; bit < text.size() * 8; ++bit) {
    std::string other = text;
    other[bit / 8] = static_cast<char>(other[bit / 8] ^ (1 << bit % 8));
    EXPECT_NE(checksum(other), checksum(text)) << bit;
  }
}

TEST(Checksum, IsWrittenAsSixteenDigits) {
  EXPECT_EQ(checksum_text(0), "0000000000000000");
  EXPECT_EQ(checksum_text(0x1f), "000000000000001f");
}

}  // namespace
}  // namespace riffle

#include "riffle/base/protobuf.h"

#include <gtest/gtest.h>

namespace riffle {
namespace {

std::string bytes(std::initializer_list<int> values) {
  std::string text;
  for (const int value : values) text.push_back(static_cast<char>(value));
  return text;
}

TEST(ProtobufMessage, WritesIntegersInGroupsOfSevenBitsLowestFirst) {
  ProtobufMessage message;
  message.add_integer(1, 150);
  message.add_integer(20, 0);
  EXPECT_EQ(message.bytes(), bytes({0x08, 0x96, 0x01, 0xA0, 0x01, 0x00}));
}

TEST(ProtobufMessage, WritesANegativeIntegerInTenBytes) {
  ProtobufMessage message;
  message.add_integer(1, -1);
  EXPECT_EQ(message.bytes(),
            bytes({0x08, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0x01}));
}

TEST(ProtobufMessage, WritesNumbersLittleEndian) {
  ProtobufMessage message;
  message.add_float(2, 1.0f);
  message.add_double(1, 1.0);
  EXPECT_EQ(message.bytes(), bytes({0x15, 0, 0, 0x80, 0x3F, 0x09, 0, 0, 0, 0, 0, 0, 0xF0, 0x3F}));
}

TEST(ProtobufMessage, WritesTextsAndMessagesAfterTheirLength) {
  ProtobufMessage inner;
  inner.add_text(2, "abc");
  ProtobufMessage outer;
  outer.add_message(3, inner);
  outer.add_bytes(4, {});
  EXPECT_EQ(outer.bytes(), bytes({0x1A, 5, 0x12, 3, 'a', 'b', 'c', 0x22, 0}));
}

}  // namespace
}  // namespace riffle

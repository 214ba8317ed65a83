#include "riffle/base/protobuf.h"

#include <bit>

namespace riffle {
namespace {

constexpr int kVarint = 0, kFixed64 = 1, kLengthDelimited = 2, kFixed32 = 5;

static_assert(std::endian::native == std::endian::little);

template <typename Value>
void append_raw(std::string& bytes, Value value) {
  bytes.append(reinterpret_cast<const char*>(&value), sizeof value);
}

}  // namespace

void ProtobufMessage::add_varint(std::uint64_t value) {
  while (value >= 0x80) {
    bytes_.push_back(static_cast<char>(value | 0x80));
    value >>= 7;
  }
  bytes_.push_back(static_cast<char>(value));
}

void ProtobufMessage::add_key(int field, int wire_type) {
  add_varint(static_cast<std::uint64_t>(field) << 3 | static_cast<std::uint64_t>(wire_type));
}

void ProtobufMessage::add_integer(int field, std::int64_t value) {
  add_key(field, kVarint);
  add_varint(static_cast<std::uint64_t>(value));
}

void ProtobufMessage::add_float(int field, float value) {
  add_key(field, kFixed32);
  append_raw(bytes_, value);
}

void ProtobufMessage::add_double(int field, double value) {
  add_key(field, kFixed64);
  append_raw(bytes_, value);
}

void ProtobufMessage::add_text(int field, std::string_view text) {
  add_key(field, kLengthDelimited);
  add_varint(text.size());
  bytes_.append(text);
}

void ProtobufMessage::add_bytes(int field, std::span<const std::byte> bytes) {
  add_text(field, {reinterpret_cast<const char*>(bytes.data()), bytes.size()});
}

void ProtobufMessage::add_message(int field, const ProtobufMessage& message) {
  add_text(field, message.bytes_);
}

}  // namespace riffle

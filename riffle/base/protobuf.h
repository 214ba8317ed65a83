// Messages in the wire format of Protocol Buffers, field by field: enough to write files that other
// tools read (ONNX models, TensorBoard's events) without their libraries.
//
//   ProtobufMessage dimension;
//   dimension.add_text(2, "batch");
//   ProtobufMessage shape;
//   shape.add_message(1, dimension);
//   write_atomically(path, shape.bytes());
//
// Fields are written in the order in which they are added. The caller knows the schema: nothing
// here checks numbers or types.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace riffle {

class ProtobufMessage {
 public:
  // Adds an int32, int64, uint64, bool or enum.
  void add_integer(int field, std::int64_t value);
  void add_float(int field, float value);
  void add_double(int field, double value);
  // Adds a string, or bytes.
  void add_text(int field, std::string_view text);
  void add_bytes(int field, std::span<const std::byte> bytes);
  void add_message(int field, const ProtobufMessage& message);

  const std::string& bytes() const { return bytes_; }

 private:
  void add_key(int field, int wire_type);
  void add_varint(std::uint64_t value);

  std::string bytes_;
};

}  // namespace riffle

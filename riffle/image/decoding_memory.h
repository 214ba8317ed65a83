// The memory of pictures while they are being decoded, bounded over all threads of the process.
//
//   const DecodingMemory memory(width * height * 3);  // waits for room
//   ... allocate, decode ...
//
// What is already decoded is its reader's to count. Thread-safe.
#pragma once

#include <cstdint>

namespace riffle {

class DecodingMemory {
 public:
  // Returns the bytes of pictures that are decoded at once: 64 MiB for each core, and 512 MiB at
  // least. A picture larger than that is decoded alone.
  static std::uint64_t most();

  // Waits until others have made room. Requires that this thread holds no other.
  explicit DecodingMemory(std::uint64_t bytes);
  ~DecodingMemory();
  DecodingMemory(const DecodingMemory&) = delete;
  DecodingMemory& operator=(const DecodingMemory&) = delete;

 private:
  const std::uint64_t bytes_;
};

}  // namespace riffle

// A 64-bit checksum (XXH64, seed 0) that tells damaged bytes from whole ones: several GB/s, and
// `xxhsum -H64` gives the same. No protection against somebody who means harm.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>

namespace riffle {

// Bytes may come in pieces of any size. Used by one thread.
class Checksum {
 public:
  void add(std::span<const std::byte> bytes);
  // Of all bytes so far; more may follow.
  std::uint64_t value() const;

 private:
  static constexpr std::size_t kStripe = 32;
  void mix_stripe(const std::byte* bytes);

  std::array<std::uint64_t, 4> lanes_ = {0x60EA27EEADC0B5D6, 0xC2B2AE3D27D4EB4F, 0,
                                         0x61C8864E7A143579};
  std::array<std::byte, kStripe> rest_{};  // not yet a whole stripe
  std::size_t rest_size_ = 0;
  std::uint64_t total_ = 0;
};

std::uint64_t checksum(std::span<const std::byte> bytes);
std::uint64_t checksum(std::string_view text);
// Throws Error when the file cannot be read.
std::uint64_t file_checksum(const std::filesystem::path& path);

// Sixteen hexadecimal digits.
std::string checksum_text(std::uint64_t value);

}  // namespace riffle

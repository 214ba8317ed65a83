// A 64-bit checksum (XXH64, seed 0) that tells damaged bytes from whole ones. `xxhsum -H64` prints
// the same. Not a protection against forgery.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace riffle {

// Bytes may come in pieces of any size. Not thread-safe.
class Checksum {
 public:
  Checksum();
  ~Checksum();

  void add(std::span<const std::byte> bytes);
  // Returns the checksum of all bytes so far; more may follow.
  std::uint64_t value() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

std::uint64_t checksum(std::span<const std::byte> bytes);
std::uint64_t checksum(std::string_view text);
// Throws Error if the file cannot be read.
std::uint64_t file_checksum(const std::filesystem::path& path);

// Returns the value as sixteen hexadecimal digits.
std::string checksum_text(std::uint64_t value);

}  // namespace riffle

#include "riffle/base/checksum.h"

#include <algorithm>
#include <vector>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "riffle/base/file.h"

namespace riffle {

struct Checksum::State {
  XXH64_state_t xxh64;
};

Checksum::Checksum() : state_(std::make_unique<State>()) { XXH64_reset(&state_->xxh64, 0); }

Checksum::~Checksum() = default;

void Checksum::add(std::span<const std::byte> bytes) {
  XXH64_update(&state_->xxh64, bytes.data(), bytes.size());
}

std::uint64_t Checksum::value() const { return XXH64_digest(&state_->xxh64); }

std::uint64_t checksum(std::span<const std::byte> bytes) {
  return XXH64(bytes.data(), bytes.size(), 0);
}

std::uint64_t checksum(std::string_view text) { return checksum(std::as_bytes(std::span(text))); }

std::uint64_t file_checksum(const std::filesystem::path& path) {
  constexpr std::uint64_t kPiece = std::uint64_t{1} << 20;
  const InputFile file(path);
  std::vector<std::byte> piece(kPiece);
  Checksum sum;
  for (std::uint64_t at = 0; at < file.size(); at += kPiece) {
    const std::span part(piece.data(), std::min(kPiece, file.size() - at));
    file.read(at, part);
    sum.add(part);
  }
  return sum.value();
}

std::string checksum_text(std::uint64_t value) {
  std::string text(16, '0');
  for (auto digit = text.rbegin(); value > 0; value >>= 4)
    *digit++ = "0123456789abcdef"[value & 15];
  return text;
}

}  // namespace riffle

#include "riffle/base/checksum.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <vector>

#include "riffle/base/file.h"

namespace riffle {
namespace {

constexpr std::uint64_t kPrime1 = 0x9E3779B185EBCA87;
constexpr std::uint64_t kPrime2 = 0xC2B2AE3D27D4EB4F;
constexpr std::uint64_t kPrime3 = 0x165667B19E3779F9;
constexpr std::uint64_t kPrime4 = 0x85EBCA77C2B2AE63;
constexpr std::uint64_t kPrime5 = 0x27D4EB2F165667C5;

template <typename Number>
Number load(const std::byte* bytes) {
  Number number;
  std::memcpy(&number, bytes, sizeof(number));
  return number;
}

std::uint64_t mixed(std::uint64_t lane, std::uint64_t word) {
  return std::rotl(lane + word * kPrime2, 31) * kPrime1;
}

}  // namespace

void Checksum::mix_stripe(const std::byte* bytes) {
  for (std::size_t i = 0; i < lanes_.size(); ++i) {
    lanes_[i] = mixed(lanes_[i], load<std::uint64_t>(bytes + 8 * i));
  }
}

void Checksum::add(std::span<const std::byte> bytes) {
  total_ += bytes.size();
  if (rest_size_ > 0) {
    const std::size_t taken = std::min(kStripe - rest_size_, bytes.size());
    std::copy_n(bytes.begin(), taken, rest_.begin() + static_cast<std::ptrdiff_t>(rest_size_));
    rest_size_ += taken;
    bytes = bytes.subspan(taken);
    if (rest_size_ < kStripe) return;
    mix_stripe(rest_.data());
    rest_size_ = 0;
  }
  for (; bytes.size() >= kStripe; bytes = bytes.subspan(kStripe)) mix_stripe(bytes.data());
  std::ranges::copy(bytes, rest_.begin());
  rest_size_ = bytes.size();
}

std::uint64_t Checksum::value() const {
  std::uint64_t hash = kPrime5;
  if (total_ >= kStripe) {
    hash = std::rotl(lanes_[0], 1) + std::rotl(lanes_[1], 7) + std::rotl(lanes_[2], 12) +
           std::rotl(lanes_[3], 18);
    for (const std::uint64_t lane : lanes_) hash = (hash ^ mixed(0, lane)) * kPrime1 + kPrime4;
  }
  hash += total_;
  const std::byte* at = rest_.data();
  std::size_t left = rest_size_;
  for (; left >= 8; left -= 8, at += 8) {
    hash = std::rotl(hash ^ mixed(0, load<std::uint64_t>(at)), 27) * kPrime1 + kPrime4;
  }
  if (left >= 4) {
    hash = std::rotl(hash ^ load<std::uint32_t>(at) * kPrime1, 23) * kPrime2 + kPrime3;
    left -= 4;
    at += 4;
  }
  for (; left > 0; --left, ++at) {
    hash = std::rotl(hash ^ std::to_integer<std::uint64_t>(*at) * kPrime5, 11) * kPrime1;
  }
  hash = (hash ^ hash >> 33) * kPrime2;
  hash = (hash ^ hash >> 29) * kPrime3;
  return hash ^ hash >> 32;
}

std::uint64_t checksum(std::span<const std::byte> bytes) {
  Checksum sum;
  sum.add(bytes);
  return sum.value();
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

// A hash of a text that is the same on every machine and in every version: it decides orders and
// identities that outlive a run. Not for texts that somebody could choose to collide.
#pragma once

#include <cstdint>
#include <string_view>

namespace riffle {

// FNV-1a, 64 bits.
constexpr std::uint64_t name_hash(std::string_view name) {
  std::uint64_t hash = 14695981039346656037u;
  for (const char c : name) hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211u;
  return hash;
}

// Returns a hash of 63 bits, never negative.
constexpr std::int64_t stable_number(std::string_view name) {
  return static_cast<std::int64_t>(name_hash(name) >> 1);
}

// Its published values.
static_assert(name_hash("") == 0xcbf29ce484222325u && name_hash("foobar") == 0x85944171f73967e8u);

}  // namespace riffle

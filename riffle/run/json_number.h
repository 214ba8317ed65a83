// Numbers in JSON that anybody may have written.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>

namespace riffle {

// Returns the whole number that a JSON value holds; nothing if it is not one, has a fraction or
// exponent, or is too large. (The library would convert 1e300 too, to a number that means nothing.)
template <typename Json>
std::optional<std::int64_t> whole_number(const Json& value) {
  if (value.is_number_unsigned()) {
    const auto number = value.template get<std::uint64_t>();
    constexpr std::uint64_t kMost = std::numeric_limits<std::int64_t>::max();
    if (number > kMost) return std::nullopt;
    return static_cast<std::int64_t>(number);
  }
  if (!value.is_number_integer()) return std::nullopt;
  return value.template get<std::int64_t>();
}

}  // namespace riffle

#include "riffle/base/escape.h"

#include <algorithm>
#include <cstddef>

namespace riffle {
namespace {

// Returns the bytes of the character that `text` begins with; 0 if it begins with none.
std::size_t character_bytes(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  if (byte(0) < 0x80) return 1;
  const std::size_t bytes = byte(0) >= 0xF0 ? 4 : byte(0) >= 0xE0 ? 3 : 2;
  if (byte(0) < 0xC2 || byte(0) > 0xF4 || text.size() < bytes) return 0;
  for (std::size_t i = 1; i < bytes; ++i) {
    if ((byte(i) & 0xC0) != 0x80) return 0;
  }
  // Too long for what they say, or no characters at all: halves of pairs, beyond the last one.
  const bool refused = (byte(0) == 0xE0 && byte(1) < 0xA0) || (byte(0) == 0xED && byte(1) > 0x9F) ||
                       (byte(0) == 0xF0 && byte(1) < 0x90) || (byte(0) == 0xF4 && byte(1) > 0x8F);
  return refused ? 0 : bytes;
}

bool is_control(std::string_view character) {
  const auto first = static_cast<unsigned char>(character[0]);
  if (character.size() == 1) return (first < 0x20 && first != '\t') || first == 0x7F;
  return first == 0xC2 && static_cast<unsigned char>(character[1]) < 0xA0;
}

}  // namespace

std::string escape_bytes(std::string_view text, std::string_view mark) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string escaped;
  while (!text.empty()) {
    const std::size_t bytes = character_bytes(text);
    const std::string_view next = text.substr(0, std::max<std::size_t>(bytes, 1));
    text.remove_prefix(next.size());
    if (bytes > 0 && !is_control(next)) {
      escaped += next;
      continue;
    }
    for (const char c : next) {
      const auto byte = static_cast<unsigned char>(c);
      escaped += mark;
      escaped += {kDigits[byte >> 4], kDigits[byte & 15]};
    }
  }
  return escaped;
}

}  // namespace riffle

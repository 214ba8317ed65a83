#include "riffle/report/markup.h"

#include <array>
#include <cstdint>

#include "riffle/base/text.h"

namespace riffle {

std::string escape(std::string_view text) {
  std::string safe;
  safe.reserve(text.size());
  for (const char c : text) {
    switch (c) {
      case '&':
        safe += "&amp;";
        break;
      case '<':
        safe += "&lt;";
        break;
      case '>':
        safe += "&gt;";
        break;
      case '"':
        safe += "&quot;";
        break;
      case '\'':
        safe += "&#39;";
        break;
      default: {
        const auto code = static_cast<unsigned char>(c);
        const bool allowed = code >= 0x20 || c == '\n' || c == '\t' || c == '\r';
        if (allowed && code != 0x7f) {
          safe += c;
        } else {
          safe += "\xEF\xBF\xBD";
        }
      }
    }
  }
  return safe;
}

std::string base64(std::span<const std::byte> bytes) {
  static constexpr std::string_view kDigits =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string text;
  text.reserve((bytes.size() + 2) / 3 * 4);
  for (std::size_t i = 0; i < bytes.size(); i += 3) {
    const std::size_t count = std::min<std::size_t>(3, bytes.size() - i);
    std::uint32_t group = 0;
    for (std::size_t j = 0; j < 3; ++j) {
      group = group << 8 | (j < count ? std::to_integer<std::uint32_t>(bytes[i + j]) : 0);
    }
    for (std::size_t j = 0; j < 4; ++j) {
      text += j <= count ? kDigits[group >> (18 - 6 * j) & 63] : '=';
    }
  }
  return text;
}

std::string colour_class(Colour colour, std::size_t place) {
  if (colour == kNeutralColour) return "cn";
  const std::size_t number = colour < 0 ? place : static_cast<std::size_t>(colour);
  return cat('c', number % kPaletteSize);
}

double text_width(std::string_view text, double font_size) {
  double ems = 0;
  for (const char c : text) {
    const auto code = static_cast<unsigned char>(c);
    if ((code & 0xC0) == 0x80) continue;  // the rest of a UTF-8 character
    if (code >= 0x80 || (c >= 'A' && c <= 'Z') || c == 'm' || c == 'w' || c == '%') {
      ems += 0.8;
    } else if (std::string_view("iljtfr.,:;|!'() ").find(c) != std::string_view::npos) {
      ems += 0.36;
    } else {
      ems += 0.6;
    }
  }
  return ems * font_size;
}

std::string text_within(std::string_view text, double font_size, double width) {
  constexpr std::string_view kEllipsis = "\u2026";
  if (text_width(text, font_size) <= width) return std::string(text);
  const double room = width - text_width(kEllipsis, font_size);
  std::size_t end = text.size();
  const auto inside_character = [&] {
    return end < text.size() && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80;
  };
  while (end > 0 && (inside_character() || text_width(text.substr(0, end), font_size) > room)) {
    --end;
  }
  return cat(text.substr(0, end), kEllipsis);
}

}  // namespace riffle

#include "riffle/base/text.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <limits>
#include <numeric>

#include "riffle/base/error.h"

namespace riffle {

std::string fixed(double value, int decimals) {
  std::array<char, 64> text;
  std::snprintf(text.data(), text.size(), "%.*f", decimals, value);
  return text.data();
}

std::string bytes_text(std::uint64_t bytes) {
  static constexpr std::array kUnits = {"B", "KiB", "MiB", "GiB", "TiB", "PiB"};
  double value = static_cast<double>(bytes);
  std::size_t unit = 0;
  while (value >= 1024 && unit + 1 < kUnits.size()) {
    value /= 1024;
    ++unit;
  }
  return cat(fixed(value, unit == 0 ? 0 : 1), ' ', kUnits[unit]);
}

std::string duration_text(double seconds) {
  if (seconds < 60) return cat(fixed(seconds, 1), " s");
  const auto whole = static_cast<std::int64_t>(std::llround(seconds));
  const auto two_digits = [](std::int64_t n) { return cat(n < 10 ? "0" : "", n); };
  if (whole < 3600) return cat(whole / 60, " min ", two_digits(whole % 60), " s");
  return cat(whole / 3600, " h ", two_digits(whole % 3600 / 60), " min");
}

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
  if (character.size() == 1)
    return (first < 0x20 && first != '\n' && first != '\t') || first == 0x7F;
  return first == 0xC2 && static_cast<unsigned char>(character[1]) < 0xA0;
}

}  // namespace

std::string printable(std::string_view text) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string shown;
  while (!text.empty()) {
    const std::size_t bytes = character_bytes(text);
    const std::string_view next = text.substr(0, std::max<std::size_t>(bytes, 1));
    text.remove_prefix(next.size());
    if (bytes > 0 && !is_control(next)) {
      shown += next;
      continue;
    }
    for (const char c : next) {
      const auto byte = static_cast<unsigned char>(c);
      shown += {'\\', 'x', kDigits[byte >> 4], kDigits[byte & 15]};
    }
  }
  return shown;
}

std::string join(std::span<const std::string> parts, std::string_view separator) {
  std::string joined;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    if (i > 0) joined += separator;
    joined += parts[i];
  }
  return joined;
}

std::vector<std::string> split(std::string_view text, char separator) {
  std::vector<std::string> parts;
  while (true) {
    const auto end = text.find(separator);
    parts.emplace_back(text.substr(0, end));
    if (end == std::string_view::npos) return parts;
    text.remove_prefix(end + 1);
  }
}

namespace {

std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 0; i < a.size(); ++i) {
    std::size_t diagonal = row[0];
    row[0] = i + 1;
    for (std::size_t j = 0; j < b.size(); ++j) {
      const std::size_t substituted = diagonal + (a[i] == b[j] ? 0 : 1);
      diagonal = row[j + 1];
      row[j + 1] = std::min({substituted, row[j] + 1, row[j + 1] + 1});
    }
  }
  return row.back();
}

template <typename Number>
Number parse_whole(std::string_view text, std::string_view what, std::string_view kind) {
  Number number{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{} || end != text.data() + text.size()) {
    throw Error(cat(what, " must be ", kind, ", not '", text, "'"));
  }
  return number;
}

}  // namespace

std::string nearest_name(std::string_view name, std::span<const std::string> candidates) {
  std::string best;
  std::size_t best_distance = std::numeric_limits<std::size_t>::max();
  for (const auto& candidate : candidates) {
    const auto distance = edit_distance(name, candidate);
    if (distance < best_distance) {
      best_distance = distance;
      best = candidate;
    }
  }
  return best;
}

std::string unknown_name(std::string_view what, std::string_view name,
                         std::span<const std::string> candidates) {
  std::string message = cat("unknown ", what, " '", name, "'");
  if (candidates.empty()) return message;
  message += cat("; did you mean '", nearest_name(name, candidates), "'?");
  if (candidates.size() <= 12) message += cat(" (valid: ", join(candidates, ", "), ")");
  return message;
}

std::int64_t parse_integer(std::string_view text, std::string_view what) {
  return parse_whole<std::int64_t>(text, what, "a whole number");
}

double parse_number(std::string_view text, std::string_view what) {
  const double number = parse_whole<double>(text, what, "a number");
  if (!std::isfinite(number)) throw Error(cat(what, " must be finite, not '", text, "'"));
  return number;
}

bool parse_bool(std::string_view text, std::string_view what) {
  if (text == "true" || text == "1" || text == "yes" || text == "on") return true;
  if (text == "false" || text == "0" || text == "no" || text == "off") return false;
  throw Error(cat(what, " must be true or false, not '", text, "'"));
}

}  // namespace riffle

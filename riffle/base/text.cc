#include "riffle/base/text.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <limits>
#include <numeric>

#include "riffle/base/error.h"
#include "riffle/base/escape.h"

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

std::string printable(std::string_view text) { return escape_bytes(text, "\\x"); }

std::string shell_word(std::string_view text) {
  constexpr std::string_view kPlain = "%+,-./:=@_";
  const auto plain = [&](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 || kPlain.find(c) != kPlain.npos;
  };
  if (!text.empty() && std::ranges::all_of(text, plain)) return std::string(text);
  std::string word = "'";
  for (const char c : text) word += c == '\'' ? "'\\''" : std::string(1, c);
  return word + '\'';
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
  if (candidates.size() <= 16) message += cat(" (valid: ", join(candidates, ", "), ")");
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

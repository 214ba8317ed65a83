// Words for people: joining values into a line, numbers with units, and the nearest of several
// names.
#pragma once

#include <cstdint>
#include <span>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

namespace riffle {

// All values written one after the other: cat("slot ", 3, " of ", 10).
template <typename... Values>
std::string cat(const Values&... values) {
  std::ostringstream out;
  (out << ... << values);
  return out.str();
}

// A number with a fixed count of decimals: fixed(3.14159, 2) == "3.14".
std::string fixed(double value, int decimals);

// "9.2 GiB", "512 B".
std::string bytes_text(std::uint64_t bytes);

// "1 h 03 min", "2 min 05 s", "7.3 s".
std::string duration_text(double seconds);

std::string join(std::span<const std::string> parts, std::string_view separator);
std::vector<std::string> split(std::string_view text, char separator);

// The candidate with the smallest edit distance to `name`; empty when there are no candidates.
std::string nearest_name(std::string_view name, std::span<const std::string> candidates);

// "unknown option 'sede'; did you mean 'seed'? (valid: frames, seed, size)"
std::string unknown_name(std::string_view what, std::string_view name,
                         std::span<const std::string> candidates);

// Whole-text conversions. They throw Error, naming `what`, unless all of `text` is a number of that
// kind.
std::int64_t parse_integer(std::string_view text, std::string_view what);
double parse_number(std::string_view text, std::string_view what);
bool parse_bool(std::string_view text, std::string_view what);

}  // namespace riffle

// Text for messages: values joined into a line, numbers with units, and the nearest of several
// names.
#pragma once

#include <cstdint>
#include <span>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

namespace riffle {

// Returns all values written one after the other: cat("slot ", 3, " of ", 10).
template <typename... Values>
std::string cat(const Values&... values) {
  std::ostringstream out;
  (out << ... << values);
  return out.str();
}

// Returns a number with a fixed count of decimals: fixed(3.14159, 2) == "3.14".
std::string fixed(double value, int decimals);

// Returns "9.2 GiB", "512 B", ...
std::string bytes_text(std::uint64_t bytes);

// Returns "1 h 03 min", "2 min 05 s", "7.3 s", ...
std::string duration_text(double seconds);

// Returns the text as one line, with what could steer a terminal or is not UTF-8 written as
// "\\x1b": control characters other than tabs, and bytes that are part of no character.
std::string printable(std::string_view text);

// Returns the text as one word for a shell: as it is, or in quotes if it has to be.
std::string shell_word(std::string_view text);

std::string join(std::span<const std::string> parts, std::string_view separator);
std::vector<std::string> split(std::string_view text, char separator);

// Returns the candidate with the smallest edit distance to `name`, or "" if there are none.
std::string nearest_name(std::string_view name, std::span<const std::string> candidates);

// Returns "unknown option 'sede'; did you mean 'seed'? (valid: frames, seed, size)".
std::string unknown_name(std::string_view what, std::string_view name,
                         std::span<const std::string> candidates);

// Return the value of a text. Throw Error, naming `what`, unless all of `text` is one.
std::int64_t parse_integer(std::string_view text, std::string_view what);
double parse_number(std::string_view text, std::string_view what);
bool parse_bool(std::string_view text, std::string_view what);

}  // namespace riffle

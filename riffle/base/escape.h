// Text of any bytes as text that a line, a terminal, YAML and JSON can hold.
#pragma once

#include <string>
#include <string_view>

namespace riffle {

// Returns the text with control characters other than tabs, and bytes that are part of no UTF-8
// character, written as `mark` and two hexadecimal digits a byte.
std::string escape_bytes(std::string_view text, std::string_view mark);

}  // namespace riffle

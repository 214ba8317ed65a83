// Fields of comma-separated files (RFC 4180).
#pragma once

#include <string>
#include <string_view>

namespace riffle {

// Returns the text as a field, in quotes if it has a comma, a quote or a line end.
std::string csv_field(std::string_view text);

}  // namespace riffle

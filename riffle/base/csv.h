// Fields of comma-separated files (RFC 4180).
#pragma once

#include <string>
#include <string_view>

namespace riffle {

// In quotes where the text needs them: it has a comma, a quote or a line end.
std::string csv_field(std::string_view text);

}  // namespace riffle

#include "apps/riffle/print.h"

#include <iostream>
#include <string_view>

#include "riffle/base/text.h"

namespace riffle {
namespace {

// JSON writes control characters below the space as \u001b, and leaves the others, which occur in
// its strings alone, as they are.
std::string without_controls(std::string_view json) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string shown;
  for (std::size_t i = 0; i < json.size(); ++i) {
    auto byte = static_cast<unsigned char>(json[i]);
    const bool of_two = byte == 0xC2 && static_cast<unsigned char>(json[i + 1]) < 0xA0;
    if (byte != 0x7F && !of_two) {
      shown += json[i];
      continue;
    }
    if (of_two) byte = static_cast<unsigned char>(json[++i]);
    shown += {'\\', 'u', '0', '0', kDigits[byte >> 4], kDigits[byte & 15]};
  }
  return shown;
}

}  // namespace

void print_line(const std::string& line) { std::cout << printable(line) << std::endl; }

void print_lines(const std::string& text) {
  for (std::string_view rest = text; !rest.empty();) {
    const auto end = rest.find('\n');
    print_line(std::string(rest.substr(0, end)));
    rest.remove_prefix(end == std::string_view::npos ? rest.size() : end + 1);
  }
}

void print_json_line(const nlohmann::ordered_json& json) {
  const auto text = json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  std::cout << without_controls(text) << std::endl;
}

}  // namespace riffle

#include "riffle/stream/uri.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "riffle/base/error.h"
#include "riffle/base/escape.h"
#include "riffle/base/text.h"

namespace riffle {
namespace {

int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

bool is_scheme(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '_';
  });
}

template <typename Number>
void require_range(Number value, Number low, Number high, const std::string& what) {
  if (value >= low && value <= high) return;
  throw Error(cat(what, " must be from ", low, " to ", high, ", not ", value));
}

}  // namespace

std::string encode_percent(std::string_view bytes) {
  static constexpr std::string_view kDigits = "0123456789ABCDEF";
  std::string encoded;
  for (const char c : bytes) {
    if (c > ' ' && c <= '~' && c != '%') {
      encoded += c;
      continue;
    }
    const auto byte = static_cast<unsigned char>(c);
    encoded += {'%', kDigits[byte / 16], kDigits[byte % 16]};
  }
  return encoded;
}

std::string decode_percent(std::string_view text) {
  std::string decoded;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      decoded += text[i];
      continue;
    }
    const int high = i + 1 < text.size() ? hex_digit(text[i + 1]) : -1;
    const int low = i + 2 < text.size() ? hex_digit(text[i + 2]) : -1;
    if (high < 0 || low < 0) {
      throw Error(cat("'", text.substr(i, 3), "' in '", text,
                      "' is not a character code; write %25 for a percent sign"));
    }
    decoded += static_cast<char>(high * 16 + low);
    i += 2;
  }
  return decoded;
}

std::string text_address(std::string_view address) { return escape_bytes(address, "%"); }

Uri::Uri(const std::string& text) : text_(text) {
  const std::string_view view = text_;
  const auto colon = view.find(':');
  if (colon == std::string_view::npos || !is_scheme(view.substr(0, colon))) {
    throw Error(cat("'", text,
                    "' is not a stream address; expected scheme:path?key=value, such as folder:",
                    text.empty() ? "/data/photos" : text));
  }
  scheme_ = view.substr(0, colon);
  const auto question = view.find('?', colon);
  path_ = decode_percent(view.substr(0, question).substr(colon + 1));
  if (question == std::string_view::npos) return;
  for (const auto& assignment : split(view.substr(question + 1), '&')) {
    if (assignment.empty()) continue;
    const auto equals = assignment.find('=');
    if (equals == std::string::npos || equals == 0) {
      throw Error(cat("'", assignment, "' in '", text, "' is not an option; expected key=value"));
    }
    const auto key = assignment.substr(0, equals);
    const auto value = decode_percent(std::string_view(assignment).substr(equals + 1));
    if (!options_.emplace(key, value).second) {
      throw Error(cat("option '", key, "' stands twice in '", text, "'"));
    }
  }
}

Uri::Uri(std::string text, std::string scheme, std::string path,
         std::map<std::string, std::string> options)
    : text_(std::move(text)),
      scheme_(std::move(scheme)),
      path_(std::move(path)),
      options_(std::move(options)) {}

void Uri::require(const std::string& key, const std::string& example) {
  if (has(key)) return;
  throw Error(cat("'", text_, "' needs the option '", key, "', such as ", example));
}

std::string Uri::get(const std::string& key, const std::string& fallback) {
  const auto* value = find(key);
  return value == nullptr ? fallback : *value;
}

std::int64_t Uri::get_integer(const std::string& key, std::int64_t fallback, std::int64_t low,
                              std::int64_t high) {
  const auto* value = find(key);
  if (value == nullptr) return fallback;
  const auto number = parse_integer(*value, naming(key));
  require_range(number, low, high, naming(key));
  return number;
}

double Uri::get_number(const std::string& key, double fallback, double low, double high) {
  const auto* value = find(key);
  if (value == nullptr) return fallback;
  const auto number = parse_number(*value, naming(key));
  require_range(number, low, high, naming(key));
  return number;
}

bool Uri::get_bool(const std::string& key, bool fallback) {
  const auto* value = find(key);
  return value == nullptr ? fallback : parse_bool(*value, naming(key));
}

std::string Uri::get_choice(const std::string& key, const std::vector<std::string>& choices) {
  const auto* value = find(key);
  if (value == nullptr) return choices.front();
  if (std::find(choices.begin(), choices.end(), *value) != choices.end()) return *value;
  throw Error(cat(naming(key), " must be one of ", join(choices, ", "), ", not '", *value, "'"));
}

void Uri::refuse_unknown() const {
  for (const auto& [key, value] : options_) {
    if (asked_.contains(key)) continue;
    const std::vector<std::string> valid(asked_.begin(), asked_.end());
    throw Error(unknown_name(scheme_ + " option", key, valid));
  }
}

const std::string* Uri::find(const std::string& key) {
  asked_.insert(key);
  const auto found = options_.find(key);
  return found == options_.end() ? nullptr : &found->second;
}

std::string Uri::naming(const std::string& key) const {
  return cat("option '", key, "' of ", scheme_, ":");
}

}  // namespace riffle

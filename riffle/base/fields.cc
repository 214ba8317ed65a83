#include "riffle/base/fields.h"

#include <algorithm>
#include <array>
#include <charconv>

#include "riffle/base/error.h"

namespace riffle {
namespace {

// Returns the shortest text that reads back as the same number.
std::string shortest(double value) {
  std::array<char, 64> text;
  const auto end = std::to_chars(text.data(), text.data() + text.size(), value).ptr;
  return {text.data(), end};
}

}  // namespace

void Fields::push(Field field) {
  if (!by_key_.emplace(field.key, fields_.size()).second) {
    throw std::logic_error("configuration key described twice: " + field.key);
  }
  fields_.push_back(std::move(field));
}

void Fields::add(const std::string& key, bool& value, const std::string& help) {
  push({key,
        help,
        {"true", "false"},
        [&value] { return value ? "true" : "false"; },
        [&value, key](const std::string& text) { value = parse_bool(text, key); }});
}

void Fields::add(const std::string& key, std::int64_t& value, const std::string& help) {
  push({key,
        help,
        {},
        [&value] { return std::to_string(value); },
        [&value, key](const std::string& text) { value = parse_integer(text, key); }});
}

void Fields::add(const std::string& key, std::uint64_t& value, const std::string& help) {
  push({key,
        help,
        {},
        [&value] { return std::to_string(value); },
        [&value, key](const std::string& text) {
          const std::int64_t number = parse_integer(text, key);
          if (number < 0) throw Error(cat(key, " must not be negative, but is ", text));
          value = static_cast<std::uint64_t>(number);
        }});
}

void Fields::add(const std::string& key, double& value, const std::string& help) {
  push({key,
        help,
        {},
        [&value] { return shortest(value); },
        [&value, key](const std::string& text) { value = parse_number(text, key); }});
}

void Fields::add(const std::string& key, std::string& value, const std::string& help) {
  push({key,
        help,
        {},
        [&value] { return value; },
        [&value](const std::string& text) { value = text; }});
}

void Fields::add(const std::string& key, std::vector<std::string>& value, const std::string& help) {
  push({key,
        help,
        {},
        [&value] { return join(value, ","); },
        [&value](const std::string& text) {
          value = text.empty() ? std::vector<std::string>() : split(text, ',');
        }});
}

const Fields::Field& Fields::find(const std::string& key) const {
  const auto found = by_key_.find(key);
  if (found != by_key_.end()) return fields_[found->second];
  std::vector<std::string> keys;
  for (const auto& field : fields_) keys.push_back(field.key);
  throw Error(unknown_name("configuration key", key, keys));
}

void Fields::add(const std::string& key, std::string& value, const std::vector<std::string>& names,
                 const std::string& help) {
  push({key, help, names, [&value] { return value; },
        [&value, key, names](const std::string& text) {
          if (std::ranges::find(names, text) == names.end()) refuse_choice(key, text, names);
          value = text;
        }});
}

void Fields::set(const std::string& key, const std::string& text) { find(key).set(text); }

void Fields::set_assignment(const std::string& assignment) {
  const auto equals = assignment.find('=');
  if (equals == std::string::npos || equals == 0) {
    throw Error(cat("'", assignment, "' must read key=value"));
  }
  set(assignment.substr(0, equals), assignment.substr(equals + 1));
}

std::string Fields::get(const std::string& key) const { return find(key).get(); }

void Fields::refuse_choice(const std::string& key, const std::string& text,
                           const std::vector<std::string>& choices) {
  throw Error(unknown_name(cat("value of ", key), text, choices));
}

}  // namespace riffle

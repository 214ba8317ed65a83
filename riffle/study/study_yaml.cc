#include "riffle/study/study_yaml.h"

#include <algorithm>

#include "riffle/base/error.h"
#include "riffle/base/text.h"

namespace riffle {

std::string replaced(std::string text, const std::string& what, const std::string& with) {
  for (auto at = text.find(what); at != std::string::npos; at = text.find(what, at + with.size())) {
    text.replace(at, what.size(), with);
  }
  return text;
}

void require_map(const YAML::Node& node, const std::string& where) {
  if (!node.IsMap()) throw Error(cat(where, " must hold keys and values"));
}

void require_keys(const YAML::Node& node, const std::string& where, const Names& valid) {
  require_map(node, where);
  for (const auto& entry : node) {
    const auto key = entry.first.as<std::string>();
    if (std::ranges::find(valid, key) == valid.end()) {
      throw Error(unknown_name(cat("key of ", where), key, valid));
    }
  }
}

void require_known(const std::string& what, const std::string& name, const Names& valid) {
  if (std::ranges::find(valid, name) == valid.end()) throw Error(unknown_name(what, name, valid));
}

std::string text_of(const YAML::Node& node) {
  if (node.IsNull()) return {};
  if (!node.IsSequence()) return node.as<std::string>();
  Names items;
  for (const auto& item : node) items.push_back(item.as<std::string>());
  return join(items, ",");
}

std::string text_of(const YAML::Node& node, const char* key, const std::string& otherwise) {
  return node[key] ? text_of(node[key]) : otherwise;
}

Names names_of(const YAML::Node& node) {
  Names names;
  if (!node || node.IsNull()) return names;
  if (!node.IsSequence()) return {node.as<std::string>()};
  for (const auto& item : node) names.push_back(item.as<std::string>());
  return names;
}

std::map<std::string, Names> choices_of(const YAML::Node& node) {
  std::map<std::string, Names> choices;
  if (!node) return choices;
  for (const auto& entry : node) choices[entry.first.as<std::string>()] = names_of(entry.second);
  return choices;
}

std::int64_t count_of(const YAML::Node& node, const std::string& what, std::int64_t most) {
  const std::int64_t count = parse_integer(node.as<std::string>(), what);
  if (count < 1) throw Error(cat(what, " must be at least 1"));
  if (count > most) throw Error(cat(what, " must be at most ", most, ", not ", count));
  return count;
}

}  // namespace riffle

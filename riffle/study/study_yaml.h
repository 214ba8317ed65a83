// Reading a study's YAML: texts, lists and counts, and complaints that name the nearest valid key.
//
// All throw Error; what yaml-cpp throws is for the caller.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include <yaml-cpp/yaml.h>

namespace riffle {

using Names = std::vector<std::string>;

std::string replaced(std::string text, const std::string& what, const std::string& with);

void require_map(const YAML::Node& node, const std::string& where);
// No key but these.
void require_keys(const YAML::Node& node, const std::string& where, const Names& valid);
void require_known(const std::string& what, const std::string& name, const Names& valid);

// A list becomes one text with commas, nothing an empty one.
std::string text_of(const YAML::Node& node);
std::string text_of(const YAML::Node& node, const char* key, const std::string& otherwise = {});
// One name or a list of them.
Names names_of(const YAML::Node& node);
std::map<std::string, Names> choices_of(const YAML::Node& node);
// At least 1.
std::int64_t count_of(const YAML::Node& node, const std::string& what);

}  // namespace riffle

// Reads texts, lists and counts of a study's YAML, with errors that name the nearest valid key.
//
// All throw Error, and pass on what yaml-cpp throws.
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
// Throws Error if `node` has other keys.
void require_keys(const YAML::Node& node, const std::string& where, const Names& valid);
void require_known(const std::string& what, const std::string& name, const Names& valid);

// Returns the node's text: of a list, its items with commas; of null, an empty one.
std::string text_of(const YAML::Node& node);
std::string text_of(const YAML::Node& node, const char* key, const std::string& otherwise = {});
// Returns one name or a list of them.
Names names_of(const YAML::Node& node);
std::map<std::string, Names> choices_of(const YAML::Node& node);
// Throws Error if the number is less than 1 or more than `most`.
std::int64_t count_of(const YAML::Node& node, const std::string& what,
                      std::int64_t most = 1'000'000'000'000);

}  // namespace riffle

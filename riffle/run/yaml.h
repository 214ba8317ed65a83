// YAML from anybody: a document of bounded size, whatever its aliases make of it.
#pragma once

#include <cstddef>
#include <string>

#include <yaml-cpp/yaml.h>

namespace riffle {

inline constexpr std::size_t kMostYamlBytes = 1 << 20;

// Returns the document. Throws Error if an alias leads back to itself, or if the text, its nodes
// with aliases written out, or its depth are more than any configuration or study needs. Passes on
// what yaml-cpp throws for a text that is not YAML.
YAML::Node parse_yaml(const std::string& text);

}  // namespace riffle

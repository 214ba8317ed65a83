// Configurations with a name: what is best known for a kind of use, as values of keys.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace riffle {

struct Preset {
  std::string name;
  // What it is for, in a line.
  std::string about;
  // Keys and values, in order.
  std::vector<std::pair<std::string, std::string>> values;
};

const std::vector<Preset>& presets();

// Throws Error, with the names there are, if the name is unknown.
const Preset& find_preset(const std::string& name);

// Returns all of them for the help of a program: "stream: what it is for (model.objective=simclr)".
std::string presets_help();

}  // namespace riffle

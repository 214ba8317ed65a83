// Command-line flags that write configuration keys, with --config FILE and --set key=value for all
// the others.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include "riffle/run/config.h"

namespace riffle {

struct FlagForKey {
  const char* flag;
  const char* key;
  bool repeatable = false;  // several values are joined by commas
};

class ConfigFlags {
 public:
  // Adds --config, --set and the given flags to a command, each with its key's meaning and default
  // as help.
  ConfigFlags(CLI::App& command, const std::vector<FlagForKey>& flags);

  // Defaults, then the file, then flags, then --set. Throws Error as ConfigBuilder does.
  Config build() const;

 private:
  struct Given {
    std::string key;
    std::string value;
    CLI::Option* option;
  };
  std::string file_;
  std::vector<std::string> assignments_;
  std::vector<std::unique_ptr<Given>> flags_;
};

}  // namespace riffle

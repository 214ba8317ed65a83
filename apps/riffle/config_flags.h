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
  // Several values are joined by commas.
  bool repeatable = false;
};

class ConfigFlags {
 public:
  // Adds --config, --set and the given flags to a command, with the meaning and default of each key
  // as help.
  ConfigFlags(CLI::App& command, const std::vector<FlagForKey>& flags);

  // Returns the configuration from defaults, then the file, then flags, then --set. Throws Error as
  // ConfigBuilder does, naming the flag that was given; if a flag and a --set contradict each
  // other; and for a flag about features with a policy that has none.
  Config build() const;

 private:
  struct Given {
    std::string flag;
    std::string key;
    std::string value;
    CLI::Option* option;
  };
  std::string file_;
  std::vector<std::string> assignments_;
  std::vector<std::unique_ptr<Given>> flags_;
};

}  // namespace riffle

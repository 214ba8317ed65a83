// Command-line flags that write configuration keys, with --preset NAME, --config FILE and --set
// key=value for all the others.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include "riffle/base/error.h"
#include "riffle/run/config.h"

namespace riffle {

struct FlagForKey {
  const char* flag;
  const char* key;
  // Several values are joined by commas.
  bool repeatable = false;
};

// Adds --preset, which writes to `name`, with what there is as help.
void add_preset_option(CLI::App& command, std::string& name);

class ConfigFlags {
 public:
  // Adds --preset, --config, --set and the given flags to a command, with the meaning and default
  // of each key as help.
  ConfigFlags(CLI::App& command, const std::vector<FlagForKey>& flags);

  // Returns the configuration from defaults, then the preset, then the file, then flags, then
  // --set. Throws Error as ConfigBuilder does, naming the flag that was given; if a flag and a
  // --set contradict each other; and for a flag about features with a policy that has none.
  Config build() const;

 private:
  struct Given {
    std::string flag;
    std::string key;
    std::string value;
    CLI::Option* option;
  };
  static Error naming_flag(const Error& error, const std::vector<const Given*>& given_flags);

  std::string preset_;
  std::string file_;
  std::vector<std::string> assignments_;
  std::vector<std::unique_ptr<Given>> flags_;
};

}  // namespace riffle

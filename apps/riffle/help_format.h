// How `--help` looks: options and commands in two columns, their meanings wrapped to the width of a
// terminal.
#pragma once

#include <string>

#include <CLI/CLI.hpp>

namespace riffle {

class HelpFormat : public CLI::Formatter {
 public:
  std::string make_option(const CLI::Option* option, bool is_positional) const override;
  std::string make_subcommand(const CLI::App* command) const override;
};

}  // namespace riffle

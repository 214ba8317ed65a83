#include <iostream>

#include "apps/riffle/commands.h"

#include "riffle/run/run_folder.h"

namespace riffle {

void add_config_command(CLI::App& app) {
  CLI::App* command =
      app.add_subcommand("config", "Print every configuration key with its meaning and value");
  const auto run = std::make_shared<std::string>();
  command->add_option("RUN", *run, "A run folder: print what it used; without one, the defaults");
  command->footer(
      "Example, a file to start from:\n"
      "  riffle config > my.yaml && riffle train --config my.yaml --run runs/mine");
  command->callback([run] {
    std::cout << config_yaml(
        run->empty() ? ConfigBuilder().build() : RunFolder::open(*run).config(), true);
  });
}

}  // namespace riffle

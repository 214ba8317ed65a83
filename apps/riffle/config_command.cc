#include <iostream>

#include "apps/riffle/commands.h"
#include "apps/riffle/print_json.h"
#include <nlohmann/json.hpp>

#include "riffle/base/error.h"
#include "riffle/run/run_folder.h"

namespace riffle {
namespace {

struct ConfigOptions {
  std::string run;
  bool defaults = false;
  bool json = false;
};

nlohmann::ordered_json as_json(Config config) {
  Fields fields;
  config.describe(fields);
  nlohmann::ordered_json keys;
  for (const auto& field : fields.all()) {
    keys[field.key] = {{"value", field.get()}, {"meaning", field.help}};
    if (!field.choices.empty()) keys[field.key]["choices"] = field.choices;
  }
  return keys;
}

void run_config(const ConfigOptions& options) {
  if (options.defaults && !options.run.empty()) {
    throw Error("give a run folder or --defaults, not both");
  }
  const Config config =
      options.run.empty() ? ConfigBuilder().build() : RunFolder::open(options.run).config();
  if (options.json) {
    print_json_line(as_json(config));
  } else {
    std::cout << config_yaml(config, true);
  }
}

}  // namespace

void add_config_command(CLI::App& app) {
  CLI::App* command =
      app.add_subcommand("config", "Print every configuration key with its meaning and value");
  const auto options = std::make_shared<ConfigOptions>();
  command->add_option("RUN", options->run,
                      "Run folder, to print what it used; default: the defaults");
  command->add_flag("--defaults", options->defaults, "Print the defaults, as without a run folder");
  command->add_flag("--json", options->json,
                    "Print one JSON object with value, meaning and choices of each key");
  command->footer(
      "Example, a file to start from:\n"
      "  riffle config > my.yaml && riffle train --config my.yaml --run runs/mine");
  command->callback([options] { run_config(*options); });
}

}  // namespace riffle

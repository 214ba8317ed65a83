#include "apps/riffle/commands.h"
#include "apps/riffle/config_flags.h"
#include "apps/riffle/print.h"
#include <nlohmann/json.hpp>

#include "riffle/base/error.h"
#include "riffle/run/run_folder.h"

namespace riffle {
namespace {

struct ConfigOptions {
  std::string run;
  std::string preset;
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

// Without a name, the defaults.
Config of_preset(const std::string& name) {
  ConfigBuilder builder;
  if (!name.empty()) builder.use_preset(name);
  return builder.build();
}

void run_config(const ConfigOptions& options) {
  if (options.defaults + !options.preset.empty() + !options.run.empty() > 1) {
    throw Error("give a run folder, --defaults or --preset, not both");
  }
  const Config config =
      options.run.empty() ? of_preset(options.preset) : RunFolder::open(options.run).config();
  if (options.json) {
    print_json_line(as_json(config));
  } else {
    print_lines(config_yaml(config, true));
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
  add_preset_option(*command, options->preset);
  command->add_flag("--json", options->json,
                    "Print one JSON object with value, meaning and choices of each key");
  command->footer(
      "Example, a file to start from:\n"
      "  riffle config > my.yaml && riffle train --config my.yaml --run runs/mine");
  command->callback([options] { run_config(*options); });
}

}  // namespace riffle

#include "apps/riffle/commands.h"
#include "apps/riffle/companions.h"
#include "apps/riffle/config_flags.h"
#include "apps/riffle/training_result.h"
#include "apps/riffle/version.h"

#include "riffle/base/error.h"
#include "riffle/base/text.h"
#include "riffle/dist/ranks.h"
#include "riffle/eval/embedding.h"
#include "riffle/run/training.h"
#include "riffle/stream/stream.h"

namespace riffle {
namespace {

const std::vector<FlagForKey> kTrainFlags = {
    {"--stream", "stream.uri"},
    {"--shape", "stream.shapes", true},
    {"--buffer", "buffer.policy"},
    {"--capacity", "buffer.capacity"},
    {"--features", "buffer.features"},
    {"--tie", "buffer.tie"},
    {"--updates", "train.updates"},
    {"--max-updates", "train.max_updates"},
    {"--batch", "train.batch"},
    {"--size", "augment.size"},
    {"--arch", "model.arch"},
    {"--stem", "model.stem"},
    {"--width", "model.width"},
    {"--lr", "train.lr"},
    {"--objective", "model.objective"},
    {"--schedule", "train.schedule"},
    {"--seed", "run.seed"},
    {"--device", "run.device"},
    {"--threads", "train.threads"},
    {"--clock", "train.clock"},
    {"--max-hours", "run.max_hours"},
    {"--keep", "checkpoint.keep"},
    {"--init", "model.init"},
    {"--probe-train", "probe.train"},
    {"--probe-val", "probe.val"},
};

struct TrainOptions {
  explicit TrainOptions(CLI::App& command) : config(command, kTrainFlags) {}
  ConfigFlags config;
  std::string run;
  TrainingOptions training;
  bool watch = false;
  bool json = false;
};

// The first probe is hours away: what it could not read is said now.
void require_probe_sets(const ProbeConfig& probe) {
  if (!is_first_process()) return;
  if (probe.train.empty()) {
    if (probe.every == ProbeConfig().every) return;
    throw Error(cat("probe.every=", probe.every, " does nothing without sets to probe on: give ",
                    "--probe-train and --probe-val"));
  }
  for (const auto& [key, uri] : {std::pair("probe.train", probe.train), {"probe.val", probe.val}}) {
    try {
      const auto stream = open_stream(uri);
      if (stream->endless() && probe.samples == 0) {
        throw Error(cat(uri, " never ends; say how much of it to read: --set probe.samples=N"));
      }
      require_first_label(*stream);
    } catch (const Error& error) {
      throw Error(cat(key, ": ", error.what()), error.kind());
    }
  }
}

void run_train(const TrainOptions& options) {
  const Config config = options.config.build();
  require_probe_sets(config.probe);
  const auto page = watch_child(options.run, options.watch);
  TrainingOptions training = options.training;
  training.probe_program = probe_program();
  training.version = version_text();
  print_training_result(options.run, train(config, options.run, training), options.json);
}

}  // namespace

void add_train_command(CLI::App& app) {
  CLI::App* command = app.add_subcommand("train", "Learn from a stream");
  const auto options = std::make_shared<TrainOptions>(*command);
  command->add_option("--run", options->run, "Folder of the run; must not hold one already")
      ->required()
      ->option_text("DIR");
  command->add_flag("--profile", options->training.profile,
                    "Show where the time of an update goes: a table, after about 120 updates");
  command->add_flag("--watch", options->watch, kWatchHelp);
  command->add_flag("--json", options->json, "Print the result as one JSON object");
  command->footer(
      "Example, a folder of photographs on a laptop:\n"
      "  riffle train --stream folder:photos --run runs/photos --size 64 --stem small \\\n"
      "               --capacity 4096 --batch 64 --max-updates 2000");
  command->callback([options] { run_train(*options); });
}

}  // namespace riffle

#include "apps/riffle/commands.h"
#include "apps/riffle/companions.h"
#include "apps/riffle/training_result.h"
#include "apps/riffle/version.h"

#include "riffle/run/training.h"

namespace riffle {
namespace {

struct ResumeOptions {
  std::string run;
  std::vector<std::string> assignments;
  bool edited_config = false;
  bool watch = false;
  bool json = false;
};

}  // namespace

void add_resume_command(CLI::App& app) {
  CLI::App* command = app.add_subcommand("resume", "Continue a run where it stopped");
  const auto options = std::make_shared<ResumeOptions>();
  command->add_option("RUN", options->run, "Run folder")->required();
  const auto add = [&](const char* flag, const char* key, const char* help, const char* text) {
    command
        ->add_option_function<std::string>(
            flag,
            [options, key](const std::string& value) {
              options->assignments.push_back(key + ("=" + value));
            },
            help)
        ->option_text(text);
  };
  add("--max-updates", "train.max_updates",
      "Updates after which the run ends; a schedule that depends on the end changes with it", "N");
  add("--max-hours", "run.max_hours", "Hours after which to stop again; 0: no limit", "HOURS");
  add("--keep", "checkpoint.keep", "Number of checkpoints to keep, the newest", "N");
  add("--threads", "train.threads",
      "CPU threads; default: the run's. Another number gives the same result up to rounding", "N");
  command->add_flag("--edited-config", options->edited_config,
                    "Continue with a config.yaml that was edited since the checkpoint");
  command->add_flag("--watch", options->watch, kWatchHelp);
  command->add_flag("--json", options->json, "Print the result as one JSON object");
  command->footer(
      "The result is the same as if the run had never stopped. What is changed here is kept in "
      "the\n"
      "run's config.yaml.\n\n"
      "Example, a run that has made its 2000 updates:\n"
      "  riffle resume runs/photos --max-updates 4000");
  command->callback([options] {
    const auto page = watch_child(options->run, options->watch);
    const auto edited = options->edited_config ? EditedConfig::accept : EditedConfig::refuse;
    TrainingOptions training;
    training.probe_program = probe_program();
    training.version = version_text();
    print_training_result(
        options->run, resume(options->run, options->assignments, edited, training), options->json);
  });
}

}  // namespace riffle

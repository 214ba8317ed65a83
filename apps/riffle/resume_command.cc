#include "apps/riffle/commands.h"
#include "apps/riffle/training_result.h"

#include "riffle/run/training.h"

namespace riffle {
namespace {

struct ResumeOptions {
  std::string run;
  std::vector<std::string> assignments;
  bool json = false;
};

}  // namespace

void add_resume_command(CLI::App& app) {
  CLI::App* command = app.add_subcommand("resume", "Go on with a run where it stopped");
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
      "Updates after which the run ends; changes the schedule where it depends on the end", "N");
  add("--max-hours", "run.max_hours", "Hours after which to stop again; 0: none", "HOURS");
  add("--keep", "checkpoint.keep", "The newest checkpoints that are kept", "N");
  add("--threads", "train.threads",
      "CPU threads. As at the start without: another count gives the same up to rounding only",
      "N");
  command->add_flag("--json", options->json, "Print the result as one JSON object");
  command->footer(
      "Everything is as if the run had never stopped. Options are kept in the run's config.yaml.\n"
      "Example, a run that was to end after 2000 updates:\n"
      "  riffle resume runs/photos --max-updates 4000");
  command->callback([options] {
    print_training_result(options->run, resume(options->run, options->assignments), options->json);
  });
}

}  // namespace riffle

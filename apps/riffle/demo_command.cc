#include <chrono>
#include <iostream>

#include "apps/riffle/commands.h"
#include <nlohmann/json.hpp>

#include "riffle/base/file.h"
#include "riffle/base/log.h"
#include "riffle/base/text.h"
#include "riffle/study/demo.h"

namespace riffle {
namespace {

struct DemoCommand {
  DemoOptions demo;
  std::string out = "demo";
  bool json = false;
};

nlohmann::ordered_json demo_json(const DemoOptions& options, const Comparison& comparison,
                                 const std::string& report, double seconds) {
  nlohmann::ordered_json modes = nlohmann::ordered_json::array();
  for (const auto& mode : comparison.modes) {
    std::vector<double> linear_runs;
    double mode_seconds = 0;
    for (const auto& run : mode.runs) {
      linear_runs.push_back(run.probe.linear_top1);
      mode_seconds += run.seconds;
    }
    modes.push_back({{"mode", mode.name},
                     {"linear_top1", mode.linear_top1()},
                     {"knn_top1", mode.knn_top1()},
                     {"linear_top1_runs", linear_runs},
                     {"same_clip_pairs", mode.same_clip_pairs()},
                     {"clips_in_buffer", mode.clips_in_buffer()},
                     {"updates", mode.runs.front().updates},
                     {"seconds", mode_seconds}});
  }
  return {{"seed", options.seed},
          {"untrained",
           {{"linear_top1", comparison.untrained.linear_top1},
            {"knn_top1", comparison.untrained.knn_top1}}},
          {"modes", modes},
          {"recipe", comparison.untrained.recipe},
          {"verdict", demo_verdict(comparison)},
          {"seconds", seconds},
          {"report", report}};
}

void run_demo(const DemoCommand& options) {
  const auto start = std::chrono::steady_clock::now();
  const ComparisonPlan plan = demo_plan(options.demo);
  log_info(cat("riffle demo: ", plan.modes.size(), " ways to learn from one stream of clips, ",
               plan.repeats, " runs each of ", plan.modes.front().config.learner.train.max_updates,
               " updates"));
  make_folders(options.out);  // before minutes are spent
  const Comparison comparison = compare(plan);
  const double seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  const std::string report = options.out + "/report.html";
  write_demo_page(report, comparison, plan, seconds);
  if (options.json) {
    std::cout << demo_json(options.demo, comparison, report, seconds).dump() << '\n';
  } else {
    std::cout << '\n' << demo_table(comparison) << '\n' << demo_verdict(comparison) << '\n';
  }
  log_info(cat("report: ", report, " (", duration_text(seconds), ")"));
}

}  // namespace

void add_demo_command(CLI::App& app) {
  CLI::App* command =
      app.add_subcommand("demo", "The paper's claim on the embedded stream, in minutes on a CPU");
  const auto options = std::make_shared<DemoCommand>();
  command->add_option("--seed", options->demo.seed, "Seed of streams and weights")
      ->option_text("[0]");
  command->add_option("--out", options->out, "Folder for report.html")->option_text("[demo]");
  command->add_option("--threads", options->demo.threads, "Cores to use; 0: all")
      ->option_text("[0]");
  command
      ->add_option("--set", options->demo.assignments,
                   "Change a configuration key in every mode, repeatable")
      ->option_text("KEY=VALUE")
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  command->add_flag("--json", options->json, "Print the result as one JSON object");
  command->footer("Example: riffle demo --seed 1 --out demo");
  command->callback([options] { run_demo(*options); });
}

}  // namespace riffle

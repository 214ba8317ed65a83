
#include "apps/riffle/commands.h"
#include "apps/riffle/print.h"
#include "apps/riffle/study_flags.h"
#include <nlohmann/json.hpp>

#include "riffle/base/clock.h"
#include "riffle/base/file.h"
#include "riffle/base/log.h"
#include "riffle/base/text.h"
#include "riffle/study/study_findings.h"
#include "riffle/study/study_page.h"
#include "riffle/study/study_places.h"
#include "riffle/study/study_tables.h"

namespace riffle {
namespace {

using Json = nlohmann::ordered_json;

// The study whose axis has the modes that the demo compares.
constexpr const char* kStudy = "demo";
constexpr const char* kModes = "mode";
// The seeds of a demo's runs are its own times this, and those that follow.
constexpr std::int64_t kSeedStep = 1000;

struct DemoOptions {
  std::vector<std::int64_t> seeds = {0};
  std::string out = kStudy;
  bool quick = false;
  StudyFlags flags;
};

Study demo_study(const DemoOptions& options) {
  Study study = load_study(find_study(kStudy), options.quick ? "quick" : "small", "");
  const auto repeats = std::ssize(study.seeds);
  study.seeds.clear();
  for (const auto seed : options.seeds) {
    for (const auto repeat : seeds_from(kSeedStep * seed, repeats)) study.seeds.push_back(repeat);
  }
  options.flags.change(study);
  // A reference takes as long as any other mode, and no stream could be one: it waits to be asked.
  if (options.flags.only.empty()) {
    for (auto& axis : study.axes) {
      std::erase_if(axis.values, [](const auto& value) { return value.reference; });
    }
  }
  return study;
}

std::string command_text(const DemoOptions& options) {
  std::vector<std::string> seeds;
  for (const auto seed : options.seeds) seeds.push_back(std::to_string(seed));
  return cat("riffle demo --seed ", join(seeds, ","), " --out ", shell_word(options.out),
             options.quick ? " --quick" : "", options.flags.set_text());
}

std::vector<std::string> verdict(const StudyOutcome& outcome, bool quick) {
  auto findings = study_findings(outcome);
  if (quick) findings.insert(findings.begin(), "Not a measurement: the runs are short and single.");
  return findings;
}

Json modes_json(const StudyOutcome& outcome) {
  Json modes = Json::array();
  for (const auto& place : places(outcome, {}, {kModes})) {
    const auto mean = [&](const char* measure) {
      return value_at(outcome, {}, place, measure).mean;
    };
    double seconds = 0;
    for (const double run : values_at(outcome, {}, place, "seconds")) seconds += run;
    modes.push_back({{"mode", place.at(kModes)},
                     {"linear_top1", mean("linear_top1")},
                     {"knn_top1", mean("knn_top1")},
                     {"linear_top1_std", value_at(outcome, {}, place, "linear_top1").spread},
                     {"linear_top1_runs", values_at(outcome, {}, place, "linear_top1")},
                     {"same_clip_pairs", mean("same_clip_pairs") / 100},
                     {"clips_in_buffer", mean("clips_in_buffer")},
                     {"updates", static_cast<std::int64_t>(mean("updates"))},
                     {"seconds", seconds}});
  }
  return modes;
}

std::string recipe_of(const StudyOutcome& outcome) {
  for (const auto& result : outcome.results) {
    if (result) return result->recipes.begin()->second;
  }
  return {};
}

Json demo_json(const DemoOptions& options, const StudyOutcome& outcome, const std::string& report,
               double seconds) {
  return {{"seed", options.seeds.front()},
          {"run_seeds", outcome.study.seeds},
          {"quick", options.quick},
          {"untrained",
           {{"linear_top1", untrained_value(outcome, {}, "linear_top1").mean},
            {"knn_top1", untrained_value(outcome, {}, "knn_top1").mean}}},
          {"modes", modes_json(outcome)},
          {"recipe", recipe_of(outcome)},
          {"verdict", join(verdict(outcome, options.quick), " ")},
          {"seconds", seconds},
          {"report", report}};
}

std::string first_table(const StudyOutcome& outcome) {
  for (const auto& shown : outcome.study.shows) {
    if (shown.kind == Shown::Kind::table) return table_text(study_table(outcome, shown));
  }
  return {};
}

void run_demo(const DemoOptions& options) {
  const auto start = Clock::now();
  const Study study = demo_study(options);
  make_folders(options.out);
  if (!options.flags.worker) {
    log_info(cat("riffle demo: ", study.axis(kModes).values.size(),
                 " ways to learn from one stream of clips; ", study.about));
    begin_again(study, options.out, parse_choice(study, options.flags.only));
  }
  const auto made = options.flags.run(study, options.out);
  if (!made) return;
  const StudyOutcome& outcome = *made;
  const auto files = write_study(outcome, options.out, command_text(options), "report.html");
  const double seconds = seconds_since(start);
  if (options.flags.json) {
    print_json_line(demo_json(options, outcome, files.page.string(), seconds));
  } else {
    print_lines(cat('\n', first_table(outcome), '\n', join(verdict(outcome, options.quick), "\n")));
  }
  log_info(cat("report: ", files.page.string(), " (", duration_text(seconds), ")"));
  require_no_failure(outcome);
}

}  // namespace

void add_demo_command(CLI::App& app) {
  CLI::App* command =
      app.add_subcommand("demo", "The paper's claim on the embedded stream, in minutes on a CPU");
  const auto options = std::make_shared<DemoOptions>();
  options->flags.jobs = 0;
  command->add_option("--seed", options->seeds, "Seed of streams and weights, or several")
      ->delimiter(',')
      ->check(CLI::Range(0, 1'000'000))
      ->option_text("[0]");
  command->add_option("--out", options->out, "Folder for report.html and the runs")
      ->option_text("[demo]");
  command->add_flag("--quick", options->quick,
                    "A form of one minute, to see it work: not a measurement");
  options->flags.add_to(*command, "--threads,--jobs", "[0]");
  command->footer(
      "Trains one small network several times for the same number of updates: straight\n"
      "from a stream of long clips, and from buffers with different policies. Prints a\n"
      "table and leaves a page. The demo is the study 'demo' without its reference, a\n"
      "decorrelated source (riffle study demo has it). If it is interrupted, the same\n"
      "command continues it.\n\n"
      "Examples\n"
      "  About five minutes on two cores:\n"
      "    riffle demo\n"
      "  Five fresh seeds of two policies, sixteen runs at once:\n"
      "    riffle demo --seed 21,22,23,24,25 --only mode=reservoir,minred --jobs 16");
  command->callback([options] { run_demo(*options); });
}

}  // namespace riffle

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <functional>
#include <iomanip>
#include <map>
#include <numeric>
#include <optional>

#include "apps/riffle/commands.h"
#include "apps/riffle/print.h"
#include "apps/riffle/study_flags.h"
#include <nlohmann/json.hpp>

#include "riffle/base/error.h"
#include "riffle/base/log.h"
#include "riffle/base/text.h"
#include "riffle/study/study_check.h"
#include "riffle/study/study_estimate.h"
#include "riffle/study/study_first.h"
#include "riffle/study/study_page.h"
#include "riffle/study/study_runner.h"

namespace riffle {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

struct StudyOptions {
  std::string study;
  std::string scale = "small";
  std::string data;
  std::string out;
  std::int64_t first_seed = 0;
  std::int64_t seeds = 0;
  std::string device;
  bool dry_run = false;
  bool check = false;
  bool pages = false;
  StudyFlags flags;
};

std::string command_text(const StudyOptions& options, const fs::path& out) {
  std::string text =
      cat("riffle study ", shell_word(options.study), " --scale ", shell_word(options.scale));
  if (!options.data.empty()) text += " --data " + shell_word(options.data);
  text += " --out " + shell_word(out.string());
  if (options.first_seed != 0) text += cat(" --seed ", options.first_seed);
  if (options.seeds > 0) text += cat(" --seeds ", options.seeds);
  if (!options.device.empty()) text += cat(" --device ", options.device);
  return text + options.flags.set_text();
}

std::string time_text(double seconds) {
  return std::isfinite(seconds) ? duration_text(seconds) : "unknown";
}

// The list is of use on a machine without the data, too.
void warn_if_not_ready(const Study& study, const StudyEstimate& estimate) {
  std::vector<const StudyRun*> due;
  for (const auto& [run, done, seconds] : estimate.runs) {
    if (!done) due.push_back(&run);
  }
  try {
    require_ready(study.probe, due);
  } catch (const Error& error) {
    log_warning(cat("these runs cannot be made: ", error.what()));
  }
}

void list_runs(const StudyOptions& options, const Study& study, const RunChoice& choice,
               const fs::path& out) {
  const StudyEstimate estimate = estimate_study(study, out, choice);
  warn_if_not_ready(study, estimate);
  if (options.flags.json) {
    Json runs = Json::array();
    for (const auto& [run, done, seconds] : estimate.runs) {
      runs.push_back({{"run", run.slug},
                      {"done", done},
                      {"updates", run.config.learner.train.max_updates},
                      {"seconds", seconds}});
    }
    const Json json = {{"study", study.name},
                       {"scale", study.scale},
                       {"runs", runs},
                       {"seconds", estimate.total()},
                       {"estimate", estimate.basis}};
    print_json_line(json);
    return;
  }
  for (const auto& [run, done, seconds] : estimate.runs) {
    print_line(cat(std::left, std::setw(40), run.slug, std::right, std::setw(8),
                   run.config.learner.train.max_updates, " updates  ",
                   done ? "done" : time_text(seconds)));
  }
  print_line(cat(estimate.runs.size(), " runs, ", time_text(estimate.total()),
                 " of training left, judged by ", estimate.basis));
}

std::string gigabytes(std::uint64_t bytes) { return fixed(static_cast<double>(bytes) / 1e9, 1); }

// Runs whose updates cost the same are measured once.
std::string cost_key(Config config) {
  Config same;
  same.learner.model = config.learner.model;
  same.learner.augment = config.learner.augment;
  same.learner.train.batch = config.learner.train.batch;
  same.learner.device = config.learner.device;
  same.learner.picture_size = config.learner.picture_size;
  return config_yaml(same);
}

struct CheckedRun {
  StudyRun run;
  RunNeeds needs;
  // Otherwise only what it writes is known.
  bool measured = false;
};

// Measures each kind of update once, and says once why one cannot be.
std::vector<CheckedRun> checked_runs(std::vector<StudyRun> runs) {
  std::map<std::string, std::optional<UpdateCost>> costs;
  std::string warned;
  std::vector<CheckedRun> checked;
  for (auto& run : runs) {
    const auto [cost, is_new] = costs.try_emplace(cost_key(run.config));
    try {
      if (is_new) cost->second = measure_update(run.config);
    } catch (const Error& error) {
      if (warned != error.what()) {
        log_warning(cat("time and memory are not known: ", error.what(),
                        " (--device overrides the study's)"));
      }
      warned = error.what();
    }
    Config planned = run.config;
    if (!cost->second) {  // what it writes does not depend on the device
      planned.learner.device = "cpu";
      planned.learner.buffer.memory = BufferMemory::best;
    }
    const RunNeeds needs = needs_of(planned, cost->second.value_or(UpdateCost{}));
    checked.push_back({std::move(run), needs, cost->second.has_value()});
  }
  return checked;
}

void print_needs(const std::vector<CheckedRun>& checked) {
  const auto line = [](const std::string& slug, const std::string& updates,
                       const std::vector<std::string>& needs) {
    std::string text = cat(std::left, std::setw(36), slug, std::right, std::setw(10), updates);
    for (const auto& each : needs) text += cat(std::setw(10), each);
    print_line(text);
  };
  line("run", "updates", {"hours", "disk GB", "host GB", "GPU GB"});
  for (const auto& [run, needs, measured] : checked) {
    const auto shown = [known = measured](const std::string& text) { return known ? text : "?"; };
    line(run.slug, std::to_string(run.config.learner.train.max_updates),
         {shown(fixed(needs.seconds / 3600, 1)), gigabytes(needs.disk_bytes),
          shown(gigabytes(needs.host_bytes)), shown(gigabytes(needs.device_bytes))});
  }
}

std::string free_space(const fs::path& folder) {
  fs::path existing = fs::absolute(folder);
  while (!fs::exists(existing)) existing = existing.parent_path();
  return cat("free in ", existing.string(), ": ", gigabytes(fs::space(existing).available), " GB");
}

// Returns what as many runs at once put into temporary files at most.
std::uint64_t temporary_bytes(const std::vector<CheckedRun>& checked, std::int64_t at_once) {
  std::vector<std::uint64_t> bytes;
  for (const auto& run : checked) bytes.push_back(run.needs.temporary_bytes);
  std::ranges::sort(bytes, std::greater());
  bytes.resize(std::min(bytes.size(), static_cast<std::size_t>(at_once)));
  return std::accumulate(bytes.begin(), bytes.end(), std::uint64_t{0});
}

// Says what is missing and what the runs will take; starts nothing.
void check_study(const Study& study, const RunChoice& choice, std::int64_t at_once,
                 const fs::path& out) {
  std::vector<StudyRun> runs;
  for (auto& run : expand(study)) {
    if (is_chosen(choice, run) && !finished_result(out, study, run)) runs.push_back(std::move(run));
  }
  std::vector<const StudyRun*> due;
  for (const auto& run : runs) due.push_back(&run);
  const auto missing = missing_sources(study.probe, due);
  for (const auto& [why, looks] : missing) {
    print_line(cat("missing: ", why));
    print_line(cat("         expected: ", looks));
  }
  if (missing.empty()) print_line("all sources are there");
  if (!runs.empty() && runs.front().first && !is_first_done(out)) {
    StudyRun first;
    first.slug = "first";
    first.config = *runs.front().first;
    runs.insert(runs.begin(), std::move(first));
  }
  const auto checked = checked_runs(std::move(runs));
  print_needs(checked);
  double seconds = 0;
  for (const auto& [run, needs, measured] : checked) {
    seconds += measured ? needs.seconds : std::nan("");
  }
  if (const std::uint64_t temporary = temporary_bytes(checked, at_once); temporary > 0) {
    std::error_code none;
    const fs::path folder = fs::temp_directory_path(none);
    print_line(cat("shuffled streams: up to ", gigabytes(temporary), " GB in TMPDIR",
                   at_once > 1 ? cat(" with ", at_once, " runs at once") : "",
                   ", more if the source's pictures are larger than the stored ones; ",
                   none ? "it names no folder" : free_space(folder)));
  }
  print_line(cat(checked.size(), " runs to make, ",
                 std::isfinite(seconds) ? fixed(seconds / 3600, 1) : "an unknown number of",
                 " hours of training one after the other; probing comes on top; ",
                 free_space(out)));
}

std::optional<StudyOutcome> require_finished_runs(const Study& study, const fs::path& out) {
  StudyOutcome found = finished_runs(study, out);
  if (found.done() == 0) throw Error(cat("no run of the study is finished in ", out.string()));
  return found;
}

void print_tables(const StudyFiles& files) {
  for (const auto& table : files.tables) print_line(table.string());
  print_line(files.page.string());
}

void run_study_command(const StudyOptions& options) {
  Study study = load_study(find_study(options.study), options.scale, options.data);
  if (options.seeds > 0 || options.first_seed != 0) {
    study.seeds =
        seeds_from(options.first_seed, options.seeds > 0 ? options.seeds : std::ssize(study.seeds));
  }
  options.flags.change(study);
  if (!options.device.empty()) study.overrides.emplace_back("run.device", options.device);
  const fs::path out = options.out.empty()
                           ? fs::path("studies-out") / cat(study.name, '-', options.scale)
                           : fs::path(options.out);
  if (options.check) {
    return check_study(study, parse_choice(study, options.flags.only), options.flags.at_once(),
                       out);
  }
  if (options.dry_run) {
    return list_runs(options, study, parse_choice(study, options.flags.only), out);
  }

  const auto made =
      options.pages ? require_finished_runs(study, out) : options.flags.run(study, out);
  if (!made) return;
  const StudyOutcome& outcome = *made;
  const StudyFiles files = write_study(outcome, out, command_text(options, out));
  if (options.flags.json) {
    Json failed = Json::array();
    for (const auto& [slug, why] : outcome.failed) failed.push_back({{"run", slug}, {"why", why}});
    const std::vector<std::string> tables(files.tables.begin(), files.tables.end());
    const std::vector<std::string> figures(files.figures.begin(), files.figures.end());
    const Json json = {{"study", study.name},
                       {"scale", study.scale},
                       {"runs", outcome.runs.size()},
                       {"done", outcome.done()},
                       {"made", outcome.made},
                       {"failed", failed},
                       {"report", files.page.string()},
                       {"results", files.json.string()},
                       {"tables", tables},
                       {"figures", figures}};
    print_json_line(json);
  } else {
    print_tables(files);
  }
  require_no_failure(outcome);
}

}  // namespace

void add_study_command(CLI::App& app) {
  CLI::App* command =
      app.add_subcommand("study", "A table or figure of the paper, or a study of your own");
  const auto options = std::make_shared<StudyOptions>();
  command
      ->add_option(
          "STUDY", options->study,
          "efficiency, bandwidth, correlated, lifelong, unseen, buffer-contents, "
          "schedules, unique-images, hundred-million, growing, policies, hostile, methods, ocssl, "
          "temporal, demo, or a file.yaml")
      ->required();
  command
      ->add_option("--scale", options->scale,
                   "smoke (seconds, any machine), quick (minutes, any machine), small (one GPU) or "
                   "paper")
      ->option_text("[small]");
  command->add_option("--data", options->data, "Folder of the data sets")->option_text("DIR");
  command
      ->add_option("--out", options->out,
                   "Folder of runs and pages; a run that is done there is not made again")
      ->option_text("[studies-out/STUDY-SCALE]");
  command->add_option("--seed", options->first_seed, "Seed of the first run of each kind")
      ->check(CLI::Range(0, 1'000'000'000))
      ->option_text("[0]");
  command
      ->add_option("--seeds", options->seeds,
                   "Runs of each kind, with seeds from --seed on; default: what the scale says")
      ->check(CLI::Range(1, 1000))
      ->option_text("N");
  command->add_option("--device", options->device, "Device of all runs; default: the study's")
      ->check(CLI::IsMember({"cpu", "cuda"}))
      ->option_text("cpu|cuda");
  options->flags.add_to(*command, "--jobs", "[1]");
  command->add_flag("--dry-run", options->dry_run, "List the runs and how long they will take");
  command->add_flag("--check", options->check,
                    "Say what is missing and what time, disk and memory each run takes; starts "
                    "nothing");
  command->add_flag("--pages", options->pages,
                    "Write the pages of the runs that are finished in --out; makes no run");
  command->footer(
      "A study makes many runs that differ in a few named ways, measures them, and\n"
      "leaves a page with tables and figures. If it is interrupted, the same command\n"
      "continues it. docs/studies.md explains the YAML files that hold studies.\n\n"
      "Examples\n"
      "  Every part of a study in seconds, on any machine:\n"
      "    riffle study correlated --scale smoke --out out/correlated\n"
      "  Three fresh seeds of two policies, six runs at once:\n"
      "    riffle study policies --data data --seed 10 --seeds 3 --jobs 6 \\\n"
      "                 --only mode=fifo,minred");
  command->callback([options] { run_study_command(*options); });
}

}  // namespace riffle

#include <cmath>
#include <filesystem>
#include <iomanip>
#include <iostream>

#include "apps/riffle/commands.h"
#include <nlohmann/json.hpp>

#include "riffle/base/error.h"
#include "riffle/base/file.h"
#include "riffle/base/log.h"
#include "riffle/base/text.h"
#include "riffle/study/study_check.h"
#include "riffle/study/study_estimate.h"
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
  std::int64_t seeds = 0;
  std::string device;
  std::vector<std::string> only;
  bool dry_run = false;
  bool json = false;
};

// Beside the installed program, or in the source tree that it was built from.
std::vector<fs::path> study_folders() {
  std::vector<fs::path> folders;
  std::error_code none;
  const fs::path program = fs::read_symlink("/proc/self/exe", none);
  for (const fs::path& folder : {program.parent_path() / "../share/riffle/studies",
                                 fs::path(RIFFLE_SOURCE_DIR) / "studies"}) {
    if (fs::is_directory(folder)) folders.push_back(folder.lexically_normal());
  }
  return folders;
}

fs::path find_study(const std::string& name) {
  if (name.ends_with(".yaml")) return name;
  std::vector<std::string> names;
  for (const auto& folder : study_folders()) {
    const fs::path file = folder / (name + ".yaml");
    if (fs::exists(file)) return file;
    for (const auto& path : list_folder(folder)) {
      if (path.extension() == ".yaml") names.push_back(path.stem().string());
    }
  }
  std::ranges::sort(names);
  names.erase(std::unique(names.begin(), names.end()), names.end());
  throw Error(unknown_name("study", name, names));
}

std::string command_text(const StudyOptions& options, const fs::path& out) {
  std::string text = cat("riffle study ", options.study, " --scale ", options.scale);
  if (!options.data.empty()) text += cat(" --data ", options.data);
  text += cat(" --out ", out.string());
  if (options.seeds > 0) text += cat(" --seeds ", options.seeds);
  if (!options.device.empty()) text += cat(" --device ", options.device);
  return text;
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
  if (options.json) {
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
    std::cout << json.dump() << '\n';
    return;
  }
  for (const auto& [run, done, seconds] : estimate.runs) {
    std::cout << std::left << std::setw(40) << run.slug << std::right << std::setw(8)
              << run.config.learner.train.max_updates << " updates  "
              << (done ? "done" : time_text(seconds)) << '\n';
  }
  std::cout << estimate.runs.size() << " runs, " << time_text(estimate.total())
            << " of training left, judged by " << estimate.basis << '\n';
}

void print_tables(const StudyFiles& files) {
  for (const auto& table : files.tables) std::cout << table.string() << '\n';
  std::cout << files.page.string() << '\n';
}

void run_study_command(const StudyOptions& options) {
  Study study = load_study(find_study(options.study), options.scale, options.data);
  if (options.seeds > 0) study.seeds = options.seeds;
  study.device = options.device;
  const fs::path out = options.out.empty()
                           ? fs::path("studies-out") / cat(study.name, '-', options.scale)
                           : fs::path(options.out);
  const RunChoice choice = parse_choice(study, options.only);
  if (options.dry_run) return list_runs(options, study, choice, out);

  const StudyOutcome outcome = run_study(study, out, choice);
  const StudyFiles files = write_study(outcome, out, command_text(options, out));
  if (options.json) {
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
    std::cout << json.dump() << '\n';
  } else {
    print_tables(files);
  }
  if (!outcome.failed.empty()) {
    std::vector<std::string> slugs;
    for (const auto& [slug, why] : outcome.failed) slugs.push_back(slug);
    throw Error(cat(slugs.size(), " of ", outcome.runs.size(), " runs failed: ", join(slugs, ", "),
                    " (", outcome.failed.front().second, ")"),
                ErrorKind::failure);
  }
}

}  // namespace

void add_study_command(CLI::App& app) {
  CLI::App* command =
      app.add_subcommand("study", "A table or figure of the paper, or a study of your own");
  const auto options = std::make_shared<StudyOptions>();
  command
      ->add_option("STUDY", options->study,
                   "efficiency, bandwidth, correlated, lifelong, unseen, buffer-contents, "
                   "schedules, unique-images, growing, policies, hostile, or a file.yaml")
      ->required();
  command->add_option("--scale", options->scale, "smoke, small (one GPU) or paper")
      ->option_text("[small]");
  command->add_option("--data", options->data, "Folder of the data sets")->option_text("DIR");
  command
      ->add_option("--out", options->out,
                   "Folder of runs and pages; what is done there is not done again")
      ->option_text("[studies-out/STUDY-SCALE]");
  command->add_option("--seeds", options->seeds, "Runs of each kind, with a seed of their own")
      ->check(CLI::Range(1, 1000))
      ->option_text("N");
  command->add_option("--device", options->device, "Of all runs, in place of the study's own")
      ->check(CLI::IsMember({"cpu", "cuda"}))
      ->option_text("cpu|cuda");
  command
      ->add_option(
          "--only", options->only,
          "Make these runs alone, of an axis of the study or of seed; repeatable. The page "
          "shows all that are done")
      ->option_text("AXIS=VALUE,...");
  command->add_flag("--dry-run", options->dry_run, "List the runs and how long they will take");
  command->add_flag("--json", options->json, "Print the result as one JSON object");
  command->footer(
      "Example, seconds on any machine:\n"
      "  riffle study correlated --scale smoke --out out/correlated");
  command->callback([options] { run_study_command(*options); });
}

}  // namespace riffle

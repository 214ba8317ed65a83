#include "apps/riffle/study_flags.h"

#include <algorithm>
#include <thread>

#include "riffle/base/error.h"
#include "riffle/base/file.h"
#include "riffle/base/text.h"

namespace riffle {
namespace fs = std::filesystem;
namespace {

constexpr const char* kSelf = "/proc/self/exe";
constexpr const char* kWorkerFlag = "--worker";

std::vector<fs::path> study_folders() {
  std::vector<fs::path> folders;
  std::error_code none;
  const fs::path program = fs::read_symlink(kSelf, none);
  for (const fs::path& folder : {program.parent_path() / "../share/riffle/studies",
                                 fs::path(RIFFLE_SOURCE_DIR) / "studies"}) {
    if (fs::is_directory(folder)) folders.push_back(folder.lexically_normal());
  }
  return folders;
}

// This program with the arguments it was started with, as a worker.
std::vector<std::string> worker_command() {
  auto words = split(read_text("/proc/self/cmdline"), '\0');
  words.pop_back();  // empty: each word ends with a zero
  words.front() = kSelf;
  words.push_back(kWorkerFlag);
  return words;
}

}  // namespace

fs::path find_study(const std::string& name) {
  const bool is_file = name.ends_with(".yaml") || name.ends_with(".yml");
  if (is_file || name.find('/') != name.npos) return name;
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

void StudyFlags::add_to(CLI::App& command, const std::string& jobs_flag,
                        const std::string& jobs_default) {
  command
      .add_option("--only", only,
                  "Make only runs with these values of an axis, or of seed; repeatable. The page "
                  "shows all runs that are done")
      ->option_text("AXIS=VALUE,...");
  command
      .add_option("--set", assignments,
                  "Change a configuration key in every run; repeatable. See riffle config")
      ->option_text("KEY=VALUE")
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  command.add_option(jobs_flag, jobs, "Runs made at once, each by a process; 0: one for each core")
      ->check(CLI::Range(0, 1024))
      ->option_text(jobs_default);
  command.add_flag("--json", json, "Print the result as one JSON object");
  command.add_flag(kWorkerFlag, worker)->group("");
}

void StudyFlags::change(Study& study) const {
  for (const auto& assignment : assignments) {
    ConfigBuilder().set_assignment(assignment);
    const auto equals = assignment.find('=');
    study.overrides.emplace_back(assignment.substr(0, equals), assignment.substr(equals + 1));
  }
}

std::int64_t StudyFlags::at_once() const {
  return jobs > 0 ? jobs : std::max<std::int64_t>(1, std::thread::hardware_concurrency());
}

std::optional<StudyOutcome> StudyFlags::run(const Study& study, const fs::path& out) const {
  if (worker) {
    serve_runs(study, out, at_once());
    return std::nullopt;
  }
  return run_study(study, out, parse_choice(study, only), {at_once(), worker_command()});
}

std::string StudyFlags::set_text() const {
  std::string text;
  for (const auto& assignment : assignments) text += " --set " + shell_word(assignment);
  return text;
}

void require_no_failure(const StudyOutcome& outcome) {
  if (outcome.failed.empty()) return;
  std::vector<std::string> slugs;
  for (const auto& [slug, why] : outcome.failed) slugs.push_back(slug);
  throw Error(cat(slugs.size(), " of ", outcome.runs.size(), " runs failed: ", join(slugs, ", "),
                  " (", outcome.failed.front().second, ")"),
              ErrorKind::failure);
}

}  // namespace riffle

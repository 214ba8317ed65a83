#include "riffle/study/study_runner.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <exception>
#include <set>

#include <unistd.h>

#include "riffle/base/error.h"
#include "riffle/base/file.h"
#include "riffle/base/log.h"
#include "riffle/base/text.h"
#include "riffle/buffer/memory_plan.h"
#include "riffle/run/checkpoint.h"
#include "riffle/run/picture_log.h"
#include "riffle/run/training.h"
#include "riffle/study/study_check.h"
#include "riffle/study/study_probe.h"

namespace riffle {
namespace fs = std::filesystem;
namespace {

[[noreturn]] void refuse_other(const fs::path& path) {
  throw Error(cat(path.string(), " holds a run of other settings than the study's; give another ",
                  "--out, or remove that folder"));
}

void require_writable(const fs::path& folder) {
  make_folders(folder);
  if (::access(folder.c_str(), W_OK) != 0) {
    throw Error(cat("cannot write to folder ", folder.string(), ": ", std::strerror(errno)));
  }
}

// A run folder says how many threads and samples it has, where a study may leave that open.
bool same_settings(Config in_folder, const Config& wanted) {
  if (wanted.learner.train.threads == 0) in_folder.learner.train.threads = 0;
  const auto& capacity = wanted.learner.buffer.capacity;
  if (parse_capacity(capacity).bytes > 0) in_folder.learner.buffer.capacity = capacity;
  return config_yaml(in_folder) == config_yaml(wanted);
}

// The run folder as `riffle train` would have left it: evaluations need no checkpoint any more.
void remove_old_checkpoints(const RunFolder& folder) {
  const auto needed = keep_newest_checkpoints(folder, 1);
  for (const auto& path : list_folder(folder.checkpoints())) {
    const auto segment = RunFolder::segment_of(path);
    if (segment && !needed.contains(*segment)) fs::remove(path);
  }
}

// Nothing when it was stopped.
std::optional<RunResult> make_result(const StudyRun& run, const fs::path& path, StudyProbe& probe) {
  const bool begun = fs::exists(path / "config.yaml");
  if ((begun ? resume(path) : train(run.config, path)).stopped) return std::nullopt;
  const auto folder = RunFolder::open(path);
  const auto result = probe.measure_run(folder, run);
  if (!result) return std::nullopt;
  write_result(path / "result.json", *result);
  remove_old_checkpoints(folder);
  return result;
}

}  // namespace

fs::path run_folder_of(const fs::path& out, const StudyRun& run) { return out / "runs" / run.slug; }

std::optional<RunResult> finished_result(const fs::path& out, const Study& study,
                                         const StudyRun& run) {
  const fs::path path = run_folder_of(out, run) / "result.json";
  if (!fs::exists(path)) return std::nullopt;
  RunResult result = read_result(path);
  // A result of an earlier version lacks newer keys: those have their defaults.
  ConfigBuilder made_with;
  made_with.read_yaml_text(result.config, path.string());
  if (config_yaml(made_with.build()) != config_yaml(run.config) ||
      result.probe != study.probe.text()) {
    refuse_other(path.parent_path());
  }
  result.order = run.order;
  result.overlap = run.overlap;
  return result;
}

std::size_t StudyOutcome::done() const {
  return static_cast<std::size_t>(
      std::ranges::count_if(results, [](const auto& result) { return result.has_value(); }));
}

void add_finished(StudyOutcome& outcome, const fs::path& out) {
  outcome.results.resize(outcome.runs.size());
  for (std::size_t i = 0; i < outcome.runs.size(); ++i) {
    auto& result = outcome.results[i];
    if (!result) result = finished_result(out, outcome.study, outcome.runs[i]);
  }
}

StudyOutcome run_study(const Study& study, const fs::path& out, const RunChoice& choice) {
  StudyOutcome outcome{study, expand(study), {}, {}, 0};
  // All at first: a study that cannot end well should not begin.
  add_finished(outcome, out);
  for (std::size_t i = 0; i < outcome.runs.size(); ++i) {
    const fs::path path = run_folder_of(out, outcome.runs[i]);
    if (!outcome.results[i] && fs::exists(path / "config.yaml") &&
        !same_settings(RunFolder::open(path).config(), outcome.runs[i].config)) {
      refuse_other(path);
    }
  }
  std::vector<const StudyRun*> due;
  for (std::size_t i = 0; i < outcome.runs.size(); ++i) {
    if (!outcome.results[i] && is_chosen(choice, outcome.runs[i])) due.push_back(&outcome.runs[i]);
  }
  require_ready(study.probe, due);
  if (!due.empty()) require_writable(out / "runs");
  StudyProbe probe(study.probe);
  for (std::size_t i = 0; i < outcome.runs.size(); ++i) {
    const StudyRun& run = outcome.runs[i];
    if (outcome.results[i] || !is_chosen(choice, run)) continue;
    log_info(cat("run ", i + 1, " of ", outcome.runs.size(), ": ", run.slug));
    try {
      outcome.results[i] = make_result(run, run_folder_of(out, run), probe);
    } catch (const std::exception& error) {
      std::string why = error.what();
      why.resize(std::min(why.size(), why.find('\n')));
      finish_progress();
      log_warning(cat(run.slug, " failed: ", why));
      outcome.failed.emplace_back(run.slug, why);
      continue;
    }
    if (!outcome.results[i]) {
      throw Error("stopped; the same command goes on where it was", ErrorKind::failure);
    }
    ++outcome.made;
  }
  return outcome;
}

}  // namespace riffle

#include "riffle/study/study_runner.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <exception>
#include <functional>
#include <set>

#include <unistd.h>

#include "riffle/base/error.h"
#include "riffle/base/file.h"
#include "riffle/base/log.h"
#include "riffle/base/text.h"
#include "riffle/buffer/memory_plan.h"
#include "riffle/run/checkpoint.h"
#include "riffle/run/picture_log.h"
#include "riffle/run/run_folder.h"
#include "riffle/run/training.h"
#include "riffle/study/machine.h"
#include "riffle/study/study_check.h"
#include "riffle/study/study_first.h"
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

// A run folder says how many threads and samples it has and where its first weights are, where a
// study may leave that open.
bool same_settings(Config in_folder, const StudyRun& run) {
  const auto& wanted = run.config.learner;
  if (wanted.train.threads == 0) in_folder.learner.train.threads = 0;
  if (run.first) in_folder.learner.model.init.clear();
  const auto& capacity = wanted.buffer.capacity;
  if (parse_capacity(capacity).bytes > 0) in_folder.learner.buffer.capacity = capacity;
  return config_yaml(in_folder) == config_yaml(run.config);
}

// Whether what is in the run's folder, if anything, was made with these settings.
bool has_settings_of(const Study& study, const StudyRun& run, const fs::path& out) {
  const fs::path folder = run_folder_of(out, run);
  const fs::path file = folder / RunFolder::kResult;
  if (fs::exists(file)) {
    const RunResult result = read_result(file);
    return same_config(result.config, run.config, file) && result.probe == study.probe.text() &&
           (run.first ? same_config(result.first, *run.first, file) : result.first.empty());
  }
  return !RunFolder::is_run(folder) || same_settings(RunFolder::open(folder).config(), run);
}

// The run folder as `riffle train` would have left it: evaluations need no checkpoint any more.
void remove_old_checkpoints(const RunFolder& folder) {
  const auto needed = keep_newest_checkpoints(folder, 1);
  for (const auto& path : list_folder(folder.checkpoints())) {
    const auto segment = RunFolder::segment_of(path);
    if (segment && !needed.contains(*segment)) fs::remove(path);
  }
}

// In this process, one after the other. Returns false if a signal asked to stop.
bool make_runs_here(
    const std::vector<const StudyRun*>& runs, const fs::path& out, const ProbePlan& plan,
    const std::function<void(std::size_t, const std::optional<std::string>&)>& ended) {
  StudyProbe probe(plan);
  for (std::size_t i = 0; i < runs.size(); ++i) {
    log_info(cat("run ", i + 1, " of ", runs.size(), ": ", runs[i]->slug));
    try {
      if (!make_run(*runs[i], out, probe)) return false;
    } catch (const std::exception& error) {
      const std::string why = error.what();
      ended(i, why.substr(0, why.find('\n')));
      continue;
    }
    ended(i, std::nullopt);
  }
  return true;
}

}  // namespace

fs::path run_folder_of(const fs::path& out, const StudyRun& run) { return out / "runs" / run.slug; }

std::optional<RunResult> finished_result(const fs::path& out, const Study& study,
                                         const StudyRun& run) {
  if (!fs::exists(run_folder_of(out, run) / RunFolder::kResult)) return std::nullopt;
  if (!has_settings_of(study, run, out)) refuse_other(run_folder_of(out, run));
  RunResult result = read_result(run_folder_of(out, run) / RunFolder::kResult);
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

std::optional<RunResult> make_run(const StudyRun& run, const fs::path& out, StudyProbe& probe,
                                  std::int64_t threads) {
  const fs::path path = run_folder_of(out, run);
  Config config = run.config;
  if (config.learner.train.threads == 0) config.learner.train.threads = threads;
  StudyRun started = run;
  if (run.first) {
    const auto weights = first_weights(*run.first, out, threads);
    if (!weights) return std::nullopt;
    config.learner.model.init = started.config.learner.model.init = weights->string();
  }
  const bool begun = RunFolder::is_run(path);
  if ((begun ? resume(path) : train(config, path)).stopped) return std::nullopt;
  const auto folder = RunFolder::open(path);
  auto result = probe.measure_run(folder, started);
  if (!result) return std::nullopt;
  result->config = config_yaml(run.config);
  if (run.first) result->first = config_yaml(*run.first);
  result->machine = machine_text();
  write_result(path / RunFolder::kResult, *result);
  remove_old_checkpoints(folder);
  return result;
}

void begin_again(const Study& study, const fs::path& out, const RunChoice& choice) {
  std::vector<fs::path> chosen;
  bool all_done = true;
  for (const auto& run : expand(study)) {
    const fs::path folder = run_folder_of(out, run);
    if (!has_settings_of(study, run, out)) {
      fs::remove_all(folder);
    } else if (is_chosen(choice, run)) {
      chosen.push_back(folder);
    }
    if (is_chosen(choice, run)) all_done = all_done && fs::exists(folder / RunFolder::kResult);
  }
  if (!all_done) return;
  for (const auto& folder : chosen) fs::remove_all(folder);
}

StudyOutcome finished_runs(const Study& study, const fs::path& out) {
  StudyOutcome outcome{study, expand(study), {}, {}, 0};
  add_finished(outcome, out);
  return outcome;
}

StudyOutcome run_study(const Study& study, const fs::path& out, const RunChoice& choice,
                       const StudyJobs& jobs) {
  // All at first: a study that cannot end well should not begin.
  StudyOutcome outcome = finished_runs(study, out);
  std::vector<const StudyRun*> due;
  for (std::size_t i = 0; i < outcome.runs.size(); ++i) {
    if (outcome.results[i]) continue;
    const StudyRun& run = outcome.runs[i];
    if (!has_settings_of(study, run, out)) refuse_other(run_folder_of(out, run));
    if (is_chosen(choice, run)) due.push_back(&run);
  }
  for (const StudyRun* run : due) {
    if (run->first && !is_first_of(*run->first, out)) refuse_other(out);
  }
  require_ready(study.probe, due);
  if (!due.empty()) require_writable(out / "runs");
  const auto ended = [&](std::size_t i, const std::optional<std::string>& failure) {
    if (!failure) {
      ++outcome.made;
      return;
    }
    finish_progress();
    log_warning(cat(due[i]->slug, " failed: ", *failure));
    outcome.failed.emplace_back(due[i]->slug, *failure);
  };
  const bool whole = jobs.count > 1 && due.size() > 1
                         ? make_runs_in_workers(due, out, jobs, ended)
                         : make_runs_here(due, out, study.probe, ended);
  if (!whole) throw Error("stopped; the same command continues where it was", ErrorKind::failure);
  add_finished(outcome, out);
  return outcome;
}

}  // namespace riffle

// Carries out a study: each run in OUT/runs/SLUG, trained or resumed, then probed; result.json ends
// it. What is done already is not done again, so a study that was interrupted continues where it
// was, and studies with the same runs may share OUT.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "riffle/study/run_result.h"
#include "riffle/study/study_choice.h"
#include "riffle/study/study_file.h"
#include "riffle/study/study_jobs.h"

namespace riffle {

class StudyProbe;

struct StudyOutcome {
  Study study;
  std::vector<StudyRun> runs;
  // One for each run; nothing if it failed or was not made.
  std::vector<std::optional<RunResult>> results;
  // Slug and reason.
  std::vector<std::pair<std::string, std::string>> failed;
  // Runs made by this call.
  std::size_t made = 0;

  // Returns the number of runs with a result.
  std::size_t done() const;
};

std::filesystem::path run_folder_of(const std::filesystem::path& out, const StudyRun& run);

// Returns the result of a run, or nothing if it is not done. Throws Error if the result is one of
// other settings.
std::optional<RunResult> finished_result(const std::filesystem::path& out, const Study& study,
                                         const StudyRun& run);

// Returns the runs of a study with the results that are in `out`, whatever machine made them.
// Throws Error as finished_result().
StudyOutcome finished_runs(const Study& study, const std::filesystem::path& out);

// Adds the results that other processes have left in `out` meanwhile.
void add_finished(StudyOutcome& outcome, const std::filesystem::path& out);

// Trains or resumes one run, probes it and leaves result.json. Returns nothing if a signal stopped
// it. `threads` is for a new run whose configuration leaves the number open; 0: all cores.
std::optional<RunResult> make_run(const StudyRun& run, const std::filesystem::path& out,
                                  StudyProbe& probe, std::int64_t threads = 0);

// Makes room for a study that is to begin again rather than be refused: removes the runs in `out`
// that have other settings than the study's, and, if all chosen runs are done, those too.
void begin_again(const Study& study, const std::filesystem::path& out, const RunChoice& choice);

// Makes the chosen runs and returns the results of all that are done. A run that fails does not end
// the study. Throws Error if a signal stopped it, and, before the first run, if a run in `out` has
// other settings than the study's, `out` cannot be written to, or something is missing that runs
// need (study_check.h). Several processes with choices of their own may share `out`.
StudyOutcome run_study(const Study& study, const std::filesystem::path& out,
                       const RunChoice& choice = {}, const StudyJobs& jobs = {});

}  // namespace riffle

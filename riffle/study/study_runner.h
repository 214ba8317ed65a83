// Carries out a study: each run in OUT/runs/SLUG, trained or resumed, then probed; result.json ends
// it. What is done already is not done again, so a study that was interrupted goes on where it was,
// and studies with the same runs may share OUT.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "riffle/study/run_result.h"
#include "riffle/study/study_choice.h"
#include "riffle/study/study_file.h"

namespace riffle {

struct StudyOutcome {
  Study study;
  std::vector<StudyRun> runs;
  std::vector<std::optional<RunResult>> results;  // as many as runs; nothing: failed, or not made
  std::vector<std::pair<std::string, std::string>> failed;  // slug, why
  std::size_t made = 0;                                     // in this call

  std::size_t done() const;  // runs with a result
};

std::filesystem::path run_folder_of(const std::filesystem::path& out, const StudyRun& run);

// The result of a run that is done; nothing when it is not. Throws Error when it is one of other
// settings.
std::optional<RunResult> finished_result(const std::filesystem::path& out, const Study& study,
                                         const StudyRun& run);

// Takes in the results that others have left in `out` meanwhile.
void add_finished(StudyOutcome& outcome, const std::filesystem::path& out);

// Makes the chosen runs; the outcome has the results of all that are done. A run that fails does
// not end the study. Throws Error when it was stopped by a signal, and, before the first run, when
// one in `out` has other settings than the study's, `out` cannot be written to, or something is
// missing that runs need (study_check.h). Several processes with choices of their own may share
// `out`.
StudyOutcome run_study(const Study& study, const std::filesystem::path& out,
                       const RunChoice& choice = {});

}  // namespace riffle

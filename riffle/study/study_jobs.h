// Runs of a study made by several processes at once.
//
// A worker is the program itself, started again with the same study: it takes names of runs from
// its standard input, one a line, makes each, and answers with one line on its standard output.
// Everything else is in the run's folder: what it gave (result.json) and how far it is
// (metrics.jsonl). A worker that dies fails its run alone. Workers end with the process that
// started them, however it ends.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "riffle/study/study_file.h"

namespace riffle {

struct StudyJobs {
  // Runs at once. 1: in this process.
  std::int64_t count = 1;
  // The program and the arguments with which it calls serve_runs(). Needed if count > 1.
  std::vector<std::string> worker = {};
};

// Has the workers make all `runs`, in their order. Calls `ended` when the process of a run says
// that it is done, with nothing, or that it failed, with the reason. Shows progress. Returns false
// if SIGINT or SIGTERM asked to stop: the workers have left checkpoints then.
bool make_runs_in_workers(
    const std::vector<const StudyRun*>& runs, const std::filesystem::path& out,
    const StudyJobs& jobs,
    const std::function<void(std::size_t run, const std::optional<std::string>& failure)>& ended);

// The worker's side. Returns at the end of its input or when it was stopped. A run whose
// configuration leaves the number of threads open gets its share of the cores.
void serve_runs(const Study& study, const std::filesystem::path& out, std::int64_t jobs);

}  // namespace riffle

// How long the runs of a study will take, before they are begun.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "riffle/study/study_choice.h"
#include "riffle/study/study_file.h"

namespace riffle {

struct RunEstimate {
  StudyRun run;
  bool done = false;
  // Of training that is left; NaN: unknown.
  double seconds = 0;
};

struct StudyEstimate {
  std::vector<RunEstimate> runs;
  // Says where the figures come from.
  std::string basis;

  // Returns NaN if the time of one is unknown.
  double total() const;
};

// Returns an estimate for the chosen runs: from the speed of the runs in `out` that are done, or,
// if none is, from a few updates of the first run on generated pictures. Filling the buffer,
// waiting for a slow stream and probing come on top.
StudyEstimate estimate_study(const Study& study, const std::filesystem::path& out,
                             const RunChoice& choice = {});

}  // namespace riffle

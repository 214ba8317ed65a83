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
  double seconds = 0;  // of training that is left; NaN: unknown
};

struct StudyEstimate {
  std::vector<RunEstimate> runs;
  std::string basis;  // where the figures come from, in words

  double total() const;  // NaN when one is unknown
};

// Of the chosen runs. From the speed of the runs in `out` that are done, where there are any;
// otherwise from a few updates of the first run, on made pictures. Filling the buffer, waiting for
// a slow stream and probing come on top.
StudyEstimate estimate_study(const Study& study, const std::filesystem::path& out,
                             const RunChoice& choice = {});

}  // namespace riffle

// The charts that a study asks for, from the results of its runs. study_places.h says what a value
// is.
#pragma once

#include <filesystem>
#include <vector>

#include "riffle/report/html_page.h"
#include "riffle/study/study_runner.h"

namespace riffle {

// Returns line charts, one for each value of the panel's axis. Curves with many points come from
// the metrics of the runs in `out`.
std::vector<Figure> study_lines(const StudyOutcome& outcome, const Shown& shown,
                                const std::filesystem::path& out);

// Returns a chart with a bar for each row, the runs as dots, and the untrained network as a line
// where it was measured.
Figure study_bars(const StudyOutcome& outcome, const Shown& shown);

}  // namespace riffle

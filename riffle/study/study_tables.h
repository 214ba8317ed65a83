// The tables and figures that a study asks for, from the results of its runs.
//
// A cell, and a point of a line, is the mean over all runs that share the named values of the axes:
// over the seeds, and over the axes that the table or figure does not name. The spread is their
// standard deviation.
#pragma once

#include <filesystem>
#include <vector>

#include "riffle/report/html_page.h"
#include "riffle/report/table.h"
#include "riffle/study/study_runner.h"

namespace riffle {

// The numbers of the paper stand in a column of their own beside ours, where it has any.
Table study_table(const StudyOutcome& outcome, const Shown& shown);

// A chart for each value of the panel's axis. Curves with many points come from the metrics of the
// runs in `out`.
std::vector<Figure> study_figures(const StudyOutcome& outcome, const Shown& shown,
                                  const std::filesystem::path& out);

}  // namespace riffle

// The tables that a study asks for, from the results of its runs. study_places.h says what a value
// is.
#pragma once

#include "riffle/report/table.h"
#include "riffle/study/study_runner.h"

namespace riffle {

// The paper's numbers stand in columns of their own beside ours, where it has any.
Table study_table(const StudyOutcome& outcome, const Shown& shown);

}  // namespace riffle

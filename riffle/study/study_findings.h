// What a study's claims came to: each held, did not hold, or is too close to tell.
#pragma once

#include <string>
#include <vector>

#include "riffle/study/study_runner.h"

namespace riffle {

// Returns a sentence for each claim whose two sides have results. A difference counts if it is
// larger than its standard error, which takes at least two runs on each side; with fewer, the
// sentence says so.
std::vector<std::string> study_findings(const StudyOutcome& outcome);

}  // namespace riffle

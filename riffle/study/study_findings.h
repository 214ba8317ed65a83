// What a study's claims came to: each held, did not hold, or is too close to tell.
#pragma once

#include <string>
#include <vector>

#include "riffle/study/study_runner.h"

namespace riffle {

// Returns a sentence for each claim whose two sides have results. A difference counts if it is
// larger than its standard error, which takes at least two runs on each side; with fewer, the
// sentence says so. Runs of the same seed, and of the same values of all axes that the claim does
// not name, are a pair: where every run of one side has its partner on the other, pairs alone are
// compared, and the error is that of their differences.
std::vector<std::string> study_findings(const StudyOutcome& outcome);

}  // namespace riffle

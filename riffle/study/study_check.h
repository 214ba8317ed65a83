// Finds what would make runs of a study fail, before the first begins.
#pragma once

#include <vector>

#include "riffle/study/study_file.h"

namespace riffle {

// Throws Error, naming what is at fault, if a device is not available, an option of a shape is
// wrong, or a source of these runs or of the probe sets cannot be opened. Sources are opened, not
// read: a shape that would read all of one (lifelong) is not asked for its first sample.
void require_ready(const ProbePlan& probe, const std::vector<const StudyRun*>& runs);

}  // namespace riffle

// Finds what would make runs of a study fail, before the first begins.
#pragma once

#include <string>
#include <vector>

#include "riffle/study/study_file.h"

namespace riffle {

// A source of runs or probe sets that cannot be used.
struct MissingSource {
  std::string why;
  // What is expected in its place.
  std::string looks;
};

// Returns all that require_ready() would find, but for devices, each source once.
std::vector<MissingSource> missing_sources(const ProbePlan& probe,
                                           const std::vector<const StudyRun*>& runs);

// Throws Error, naming what is at fault, if a device is not available, an option of a shape is
// wrong, a source of these runs or of the probe sets cannot be opened, or the first sample of a
// probe set has no label. Of a source no more is read: a shape that would read all of one
// (lifelong) is not asked for its first sample.
void require_ready(const ProbePlan& probe, const std::vector<const StudyRun*>& runs);

}  // namespace riffle

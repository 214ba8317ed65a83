// Which of a study's runs to make, as a user says it: seed=0, mode=fifo,minred.
//
// Several processes may share a study's folder, each with a choice of its own.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "riffle/study/study_file.h"

namespace riffle {

// Axis, or "seed" -> its values; of what is not named, all. Empty: every run.
using RunChoice = std::map<std::string, std::vector<std::string>>;

// Each text is AXIS=VALUE or AXIS=VALUE,VALUE,...; two of one axis add up. Throws Error, naming the
// nearest, for an axis or a value that the study does not have, and when no run is chosen.
RunChoice parse_choice(const Study& study, const std::vector<std::string>& texts);

bool is_chosen(const RunChoice& choice, const StudyRun& run);

}  // namespace riffle

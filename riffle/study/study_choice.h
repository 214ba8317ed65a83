// Which runs of a study to make, as a user gives them: seed=0, mode=fifo,minred.
//
// Several processes may share a study's folder, each with a choice of its own.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "riffle/study/study_file.h"

namespace riffle {

// Axis, or "seed" -> its values. What is not named is not restricted; empty: every run.
using RunChoice = std::map<std::string, std::vector<std::string>>;

// Parses texts of the form AXIS=VALUE,VALUE,...; two of one axis add up. Throws Error, naming the
// nearest, if the study does not have an axis or value, and if no run is chosen.
RunChoice parse_choice(const Study& study, const std::vector<std::string>& texts);

bool is_chosen(const RunChoice& choice, const StudyRun& run);

}  // namespace riffle

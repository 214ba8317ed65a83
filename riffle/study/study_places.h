// Where runs of a study stand among its axes, and what is known of those at one place.
//
// A value at a place is the mean over all runs with results that share the place's values of the
// axes: over the seeds, and over the axes that the place does not name. The spread is their
// standard deviation.
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <vector>

#include "riffle/study/measures.h"
#include "riffle/study/study_runner.h"

namespace riffle {

// Axis -> value, for some of the axes.
using Place = std::map<std::string, std::string>;
// Axis -> values: only runs with one of these count.
using Where = std::map<std::string, std::vector<std::string>>;

Place joined(Place a, const Place& b);

std::vector<std::string> value_names(const StudyAxis& axis);
std::string value_title(const Study& study, const std::string& axis, const std::string& value);
// Returns the index of a value on its axis. A thing keeps its colour by it, whatever is missing.
std::size_t value_index(const Study& study, const std::string& axis, const std::string& value);
// Returns whether one of the values breaks the rules of a stream.
bool is_reference(const Study& study, const Place& place);

// Returns the indices of the runs at a place that have a result.
std::vector<std::size_t> runs_at(const StudyOutcome& outcome, const Where& where,
                                 const Place& place);
// Returns every combination of values of these axes that has a result, in the order of the file.
std::vector<Place> places(const StudyOutcome& outcome, const Where& where,
                          const std::vector<std::string>& axes);

// Return a measure's values at a place, one for each run, and their mean and spread.
std::vector<double> values_at(const StudyOutcome& outcome, const Where& where, const Place& place,
                              const std::string& name);
MeanAndSpread value_at(const StudyOutcome& outcome, const Where& where, const Place& place,
                       const std::string& name);
// Returns the same of the runs' networks before they learned anything; NaN where it was not
// measured.
MeanAndSpread untrained_value(const StudyOutcome& outcome, const Where& where,
                              const std::string& name);

}  // namespace riffle

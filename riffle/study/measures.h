// Measures: the numbers of a run that tables and figures of a study show, by name.
//
// A measure may name a probe set or group after an @: linear_top1@imagenet, share@first. Without
// one, accuracies are those of the study's first set. Missing values are NaN.
//
// A new measure is a row of all_measures() in measures.cc. One of a run as a whole is put into
// RunResult::values by run_values() in study_probe.cc; one of each evaluation is worked out in
// point_value().
#pragma once

#include <string>
#include <vector>

#include "riffle/report/table.h"
#include "riffle/study/run_result.h"

namespace riffle {

// Stands for the metric of a curve that is worked out from others (pair_formula.h).
inline constexpr const char* kFormulaMetric = "same_clip_pairs_formula";

struct Measure {
  std::string name;
  // In tables and legends: "linear top-1".
  std::string label;
  std::string unit = {};
  int decimals = 1;
  Best best = Best::none;
  // From the value in result.json to the unit.
  double factor = 1;
  // Its key in metrics.jsonl, for a curve with many points; may be empty.
  std::string metric = {};
  // Known at each evaluation of a run.
  bool per_point = false;
  // Known of a run as a whole.
  bool final_value = true;
  // It is the mean over a run's evaluations of this other measure; may be empty.
  std::string mean_of = {};
};

// Returns a measure by its name, with or without @part. Throws std::logic_error if it is unknown.
const Measure& measure(const std::string& name);
// Returns "linear top-1, imagenet".
std::string measure_label(const std::string& name);

// Throw Error, naming the nearest, if the name is not a measure of a run, or not one that can be
// drawn over `x` (updates, samples, or an axis). `parts` are the probe sets and groups; if it is
// empty, what follows the @ is not checked.
void require_measure(const std::string& name, const std::vector<std::string>& parts);
void require_curve(const std::string& name, const std::vector<std::string>& parts,
                   const std::string& x);

// Returns the measures that a probe gives of each set and group.
const std::vector<std::string>& accuracy_names();
bool is_accuracy(const std::string& name);

// Returns a measure at the end of the run; `set` is the study's first probe set.
double final_value(const RunResult& result, const std::string& name, const std::string& set);
// Returns a measure at one of the run's evaluations. Requires that it is known there.
double point_value(const RunResult& result, std::size_t point, const std::string& name,
                   const std::string& set);

// Returns the evaluation nearest to the end of a group's turn, the earlier of two equally near.
// Groups are counted in the order in which they came. Requires an evaluation.
std::size_t end_point(const RunResult& result, std::size_t group);

// Returns the paper's forgetting of a group, in percent: how much its accuracy has dropped at an
// evaluation since the end of its own turn, relative to that. NaN before that. Negative: it got
// better.
double forgetting(const RunResult& result, std::size_t group, std::size_t point);

struct MeanAndSpread {
  double mean = 0;
  // Standard deviation of the sample; NaN for fewer than two values.
  double spread = 0;
};

// Counts the values that are finite. Returns NaN if there are none.
MeanAndSpread mean_and_spread(const std::vector<double>& values);

}  // namespace riffle

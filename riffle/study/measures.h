// What tables and figures of a study show: numbers of a run, by name.
//
// A measure may name a probe set or group behind an @: linear_top1@imagenet, share@first. Without
// one, accuracies are those of the study's first set. Values that are not there are NaN.
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
  std::string label;  // for people: "linear top-1"
  std::string unit;
  int decimals = 1;
  Best best = Best::none;
  double factor = 1;        // from the value in result.json to the unit
  std::string metric;       // its key in metrics.jsonl, for a curve with many points; may be empty
  bool per_point = false;   // known at each evaluation of a run
  bool final_value = true;  // known of a run as a whole
};

// By its name, with or without @part. Throws std::logic_error when there is none.
const Measure& measure(const std::string& name);
// "linear top-1, imagenet"
std::string measure_label(const std::string& name);

// Throw Error, naming the nearest, for a name that is no measure of a run, or none that can be
// drawn over `x` (updates, samples, or an axis). `parts` are the probe sets and groups; empty:
// whatever stands behind the @ is not looked at.
void require_measure(const std::string& name, const std::vector<std::string>& parts);
void require_curve(const std::string& name, const std::vector<std::string>& parts,
                   const std::string& x);

// At the end of the run; `set` is the study's first probe set.
double final_value(const RunResult& result, const std::string& name, const std::string& set);
// At one of its evaluations, for measures that are known there.
double point_value(const RunResult& result, std::size_t point, const std::string& name,
                   const std::string& set);

// The paper's forgetting of a group, in percent: how much its accuracy has dropped at an evaluation
// since the end of its own training, relative to that. Groups take equal shares of the stream; the
// evaluation nearest to a group's end counts as its end. NaN before that. Negative: it got better.
double forgetting(const RunResult& result, std::size_t group, std::size_t point);

struct MeanAndSpread {
  double mean = 0;
  double spread = 0;  // standard deviation of the sample; NaN for fewer than two values
};

// Of the values that are finite; NaN without any.
MeanAndSpread mean_and_spread(const std::vector<double>& values);

}  // namespace riffle

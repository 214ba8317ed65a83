// What one run of a study gave: result.json in its folder. A run with one is done.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

namespace riffle {

struct Accuracy {
  double linear_top1 = 0;  // percent
  double linear_top5 = 0;
  double knn_top1 = 0;
};

// How a run stood at one of the study's evaluations.
struct ResultPoint {
  std::int64_t update = 0;  // 0: before it learned anything
  std::int64_t samples_seen = 0;
  std::map<std::string, Accuracy> accuracy;  // by probe set and group
  std::map<std::string, double> share;       // by group: percent of the buffer; without one, of the
                                             // last samples, as many as it would hold
};

struct RunResult {
  std::string config;  // as YAML, and
  std::string probe;   // the evaluations in words: a result of other settings is none of this study
  std::map<std::string, std::string> recipes;  // by probe set, with every figure
  std::vector<std::string> order;              // groups in the order in which they came
  // Before its turn and behind it, a group mixes with its neighbours for this share of a turn. Not
  // in result.json: the study knows it.
  double overlap = 0;
  std::vector<ResultPoint> points;  // the last is the run's end
  // By measure: same_clip_pairs, same_clip_pairs_formula, clips_in_buffer, junk_in_batch,
  // junk_in_buffer, std, loss, seconds, images_per_s, updates, samples_seen.
  std::map<std::string, double> values;
};

// A value that is not finite is written as null and read as NaN.
void write_result(const std::filesystem::path& path, const RunResult& result);
// Throws Error naming the file when it is no result.
RunResult read_result(const std::filesystem::path& path);

}  // namespace riffle

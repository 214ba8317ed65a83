// The result of one run of a study: result.json in its folder. A run that has one is done.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

namespace riffle {

struct Accuracy {
  // All in percent.
  double linear_top1 = 0;
  double linear_top5 = 0;
  double knn_top1 = 0;
};

// How a run stood at one of the study's evaluations.
struct ResultPoint {
  // 0: before it learned anything.
  std::int64_t update = 0;
  std::int64_t samples_seen = 0;
  // By probe set and group.
  std::map<std::string, Accuracy> accuracy;
  // By group: percent of the buffer; without a buffer, of the last samples that it would hold.
  std::map<std::string, double> share;
};

struct RunResult {
  // As YAML. With `probe`, the evaluations as text, it tells results of other settings apart.
  std::string config;
  std::string probe;
  // The configuration of the run whose network this one started from; empty: none.
  std::string first;
  // What the run ended on; empty: unknown.
  std::string machine;
  // By probe set, with every figure.
  std::map<std::string, std::string> recipes;
  // Groups in the order in which they came.
  std::vector<std::string> order;
  // Samples of the stream at the end of each group's turn; empty: not counted.
  std::vector<std::int64_t> turns;
  // Before and after its turn, a group mixes with its neighbours for this share of a turn. Not in
  // result.json: the study knows it.
  double overlap = 0;
  // The last is the run's end.
  std::vector<ResultPoint> points;
  // By measure: same_clip_pairs, same_clip_pairs_formula, clips_in_buffer, buffer_mean_age,
  // junk_in_batch, junk_in_buffer, std, loss, seconds, images_per_s, updates, samples_seen.
  std::map<std::string, double> values;
};

// A value that is not finite is written as null and read as NaN. Labels may be any bytes: what is
// not text is written as %XX, and a percent sign that would be read as such a code as %25.
void write_result(const std::filesystem::path& path, const RunResult& result);
// Throws Error, naming the file, if it is not a result.
RunResult read_result(const std::filesystem::path& path);

}  // namespace riffle

// The curves of a metrics.jsonl of any length, at a cost that does not grow with it.
#pragma once

#include <cstddef>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

namespace riffle {

struct SampledMetrics {
  std::vector<double> updates;
  // By key: a value for each of `updates`; NaN: none there.
  std::map<std::string, std::vector<double>> curves;
};

// Returns at most `points` points, each the mean of a few lines in a row, rates by the time that
// they took. Reads a short file whole and a long one in `points` places, the newest lines always
// among them. Passes over what is not a line of metrics; a file that is not there is empty.
SampledMetrics sample_metrics(const std::filesystem::path& path, std::size_t points);

// Returns the values of the newest whole line, and rates over the last few, from the end of the
// file.
std::map<std::string, double> newest_metrics(const std::filesystem::path& path);

}  // namespace riffle

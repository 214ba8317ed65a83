// What a run's metrics.jsonl says, key by key.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

namespace riffle {

struct MetricCurve {
  std::vector<double> updates;
  std::vector<double> values;  // NaN where the file says null
};

struct MetricsHistory {
  std::map<std::string, MetricCurve> curves;

  // Returns null if no line has the key.
  const MetricCurve* find(const std::string& key) const;
  // Returns the last value of a key; NaN if there is none.
  double last(const std::string& key) const;
  // Return the mean, and the updates per second, over the last tenth of a run's updates: lines are
  // fewer the longer they are past, so each counts for the updates since the one before. NaN if no
  // line has the key.
  double late_mean(const std::string& key) const;
  double late_updates_per_s() const;
};

// Returns what the file holds. Passes over lines that are not JSON objects (a run may be writing);
// a file that is not there yet is empty.
MetricsHistory read_metrics(const std::filesystem::path& path);

// Returns the update of the last whole line, or 0 if there is none yet. Reads the end of the file
// only.
std::int64_t newest_update(const std::filesystem::path& path);

}  // namespace riffle

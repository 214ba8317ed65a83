#include "riffle/run/metrics_history.h"

#include <algorithm>
#include <cmath>
#include <span>

#include <nlohmann/json.hpp>

#include "riffle/base/file.h"
#include "riffle/base/text.h"
#include "riffle/run/json_number.h"

namespace riffle {
namespace {

// Returns the place of the first update in the last tenth of a run; there is one.
std::size_t late_part(const std::vector<double>& updates) {
  const auto late = std::ranges::upper_bound(updates, 0.9 * updates.back());
  return static_cast<std::size_t>(late - updates.begin());
}

}  // namespace

const MetricCurve* MetricsHistory::find(const std::string& key) const {
  const auto found = curves.find(key);
  return found == curves.end() ? nullptr : &found->second;
}

double MetricsHistory::last(const std::string& key) const {
  const MetricCurve* curve = find(key);
  return curve == nullptr ? std::nan("") : curve->values.back();
}

double MetricsHistory::late_mean(const std::string& key) const {
  const MetricCurve* curve = find(key);
  if (curve == nullptr) return std::nan("");
  const auto& [updates, values] = *curve;
  double sum = 0, counted = 0;
  for (std::size_t i = late_part(updates); i < values.size(); ++i) {
    if (!std::isfinite(values[i])) continue;
    const double since = updates[i] - (i > 0 ? updates[i - 1] : 0);
    sum += since * values[i];
    counted += since;
  }
  return counted > 0 ? sum / counted : std::nan("");
}

double MetricsHistory::late_updates_per_s() const {
  const MetricCurve* seconds = find("seconds");
  if (seconds == nullptr || seconds->values.size() < 2) return last("updates_per_s");
  const std::size_t before = std::max<std::size_t>(1, late_part(seconds->updates)) - 1;
  const double took = seconds->values.back() - seconds->values[before];
  if (!(took > 0)) return last("updates_per_s");
  return (seconds->updates.back() - seconds->updates[before]) / took;
}

MetricsHistory read_metrics(const std::filesystem::path& path) {
  MetricsHistory history;
  if (!std::filesystem::exists(path)) return history;
  for (const auto& text : split(read_text(path), '\n')) {
    const auto line = nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
    if (!line.is_object() || !line.contains("update") || !line["update"].is_number()) continue;
    for (const auto& [key, value] : line.items()) {
      if (key == "update" || !(value.is_number() || value.is_null())) continue;
      auto& curve = history.curves[key];
      curve.updates.push_back(line["update"]);
      curve.values.push_back(value.is_null() ? std::nan("") : value.get<double>());
    }
  }
  return history;
}

std::int64_t newest_update(const std::filesystem::path& path) {
  constexpr std::uint64_t kMostOfALine = 8192;
  if (!std::filesystem::exists(path)) return 0;
  const InputFile file(path);
  std::string end(std::min(file.size(), kMostOfALine), '\0');
  file.read(file.size() - end.size(), std::as_writable_bytes(std::span(end)));
  auto lines = split(end, '\n');
  lines.pop_back();  // empty, or not whole yet
  while (!lines.empty()) {
    const auto line = nlohmann::json::parse(lines.back(), nullptr, /*allow_exceptions=*/false);
    if (line.is_object() && line.contains("update")) {
      if (const auto update = whole_number(line["update"])) return *update;
    }
    lines.pop_back();
  }
  return 0;
}

}  // namespace riffle

#include "riffle/run/metrics_history.h"

#include <algorithm>
#include <cmath>
#include <span>

#include <nlohmann/json.hpp>

#include "riffle/base/file.h"
#include "riffle/base/text.h"
#include "riffle/run/json_number.h"

namespace riffle {

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
  const std::size_t count = std::max<std::size_t>(1, curve->values.size() / 10);
  double sum = 0;
  int finite = 0;
  for (std::size_t i = curve->values.size() - count; i < curve->values.size(); ++i) {
    if (!std::isfinite(curve->values[i])) continue;
    sum += curve->values[i];
    ++finite;
  }
  return finite > 0 ? sum / finite : std::nan("");
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

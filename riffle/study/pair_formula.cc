#include "riffle/study/pair_formula.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "riffle/stream/pairs.h"

namespace riffle {
namespace {

double expected_share(double samples, double clips) {
  if (!std::isfinite(samples) || !std::isfinite(clips)) return std::nan("");
  if (samples < 2 || clips < 1) return 0;  // a source without clips has none
  const double p = (samples - clips) / (samples - 1);
  return pair_correlation(std::lround(samples), std::clamp(p, 0.0, 1.0));
}

}  // namespace

MetricCurve expected_same_clip_pairs(const MetricsHistory& metrics) {
  MetricCurve expected;
  const MetricCurve* sizes = metrics.find("buffer_size");
  const MetricCurve* clips = metrics.find("buffer_clips");
  if (sizes == nullptr || clips == nullptr) return expected;
  std::map<double, double> size_at;
  for (std::size_t i = 0; i < sizes->updates.size(); ++i) {
    size_at[sizes->updates[i]] = sizes->values[i];
  }
  for (std::size_t i = 0; i < clips->updates.size(); ++i) {
    const auto size = size_at.find(clips->updates[i]);
    if (size == size_at.end()) continue;
    expected.updates.push_back(clips->updates[i]);
    expected.values.push_back(expected_share(size->second, clips->values[i]));
  }
  return expected;
}

}  // namespace riffle

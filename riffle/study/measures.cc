#include "riffle/study/measures.h"

#include <algorithm>
#include <cmath>
#include <stdexcept>

#include "riffle/base/error.h"
#include "riffle/base/text.h"

namespace riffle {
namespace {

const std::vector<Measure>& all_measures() {
  static const std::vector<Measure> all = {
      {.name = "linear_top1",
       .label = "linear top-1",
       .unit = "%",
       .best = Best::highest,
       .per_point = true},
      {.name = "linear_top5",
       .label = "linear top-5",
       .unit = "%",
       .best = Best::highest,
       .per_point = true},
      {.name = "knn_top1", .label = "k-NN", .unit = "%", .best = Best::highest, .per_point = true},
      {.name = "forgetting",
       .label = "forgetting",
       .unit = "%",
       .best = Best::lowest,
       .per_point = true},
      {.name = "forgetting_first",
       .label = "forgetting, first group",
       .unit = "%",
       .best = Best::lowest,
       .per_point = true},
      {.name = "unseen",
       .label = "linear top-1, groups not yet seen",
       .unit = "%",
       .per_point = true,
       .final_value = false},
      {.name = "seen",
       .label = "linear top-1, groups seen so far",
       .unit = "%",
       .best = Best::highest,
       .per_point = true},
      {.name = "seen_mean",
       .label = "the same, mean over time",
       .unit = "%",
       .best = Best::highest,
       .mean_of = "seen"},
      {.name = "linear_top1_mean",
       .label = "linear top-1, mean over time",
       .unit = "%",
       .best = Best::highest,
       .mean_of = "linear_top1"},
      {.name = "share", .label = "share of the buffer", .unit = "%", .per_point = true},
      {.name = "same_clip_pairs",
       .label = "same-clip pairs in a batch",
       .unit = "%",
       .decimals = 2,
       .factor = 100,
       .metric = "same_clip_pairs"},
      {.name = "same_clip_pairs_formula",
       .label = "same-clip pairs by the formula",
       .unit = "%",
       .decimals = 2,
       .factor = 100,
       .metric = kFormulaMetric},
      {.name = "clips_in_buffer",
       .label = "clips in the buffer",
       .decimals = 0,
       .metric = "buffer_clips"},
      {.name = "buffer_mean_age",
       .label = "mean age in the buffer (samples)",
       .decimals = 0,
       .metric = "buffer_mean_age"},
      {.name = "junk_in_batch",
       .label = "junk in a batch",
       .unit = "%",
       .factor = 100,
       .metric = "junk_in_batch"},
      {.name = "junk_in_buffer",
       .label = "junk in the buffer",
       .unit = "%",
       .factor = 100,
       .metric = "junk_in_buffer"},
      {.name = "std", .label = "collapse gauge", .decimals = 3, .metric = "std"},
      {.name = "loss", .label = "loss", .decimals = 3, .metric = "loss"},
      {.name = "lr", .label = "learning rate", .metric = "lr", .final_value = false},
      {.name = "seconds", .label = "training", .unit = "s", .decimals = 0},
      {.name = "images_per_s", .label = "speed", .unit = "images/s", .decimals = 0},
      {.name = "updates", .label = "updates", .decimals = 0},
      {.name = "samples_seen", .label = "samples seen", .decimals = 0}};
  return all;
}

struct Parts {
  std::string name;
  std::string part;
};

Parts split_name(const std::string& text) {
  const auto at = text.find('@');
  if (at == std::string::npos) return {text, {}};
  return {text.substr(0, at), text.substr(at + 1)};
}

double accuracy_of(const ResultPoint& point, const std::string& name, const std::string& part) {
  const auto found = point.accuracy.find(part);
  if (found == point.accuracy.end()) return std::nan("");
  if (name == "linear_top5") return found->second.linear_top5;
  return name == "knn_top1" ? found->second.knn_top1 : found->second.linear_top1;
}

// In samples of the stream. Where they were not counted, groups share what the run saw equally.
double end_of_group(const RunResult& result, std::size_t group) {
  if (group < result.turns.size()) return static_cast<double>(result.turns[group]);
  return static_cast<double>(result.points.back().samples_seen) * static_cast<double>(group + 1) /
         static_cast<double>(result.order.size());
}

double mean_forgetting(const RunResult& result, std::size_t point) {
  std::vector<double> values;
  for (std::size_t group = 0; group + 1 < result.order.size(); ++group) {
    if (end_point(result, group) < point) values.push_back(forgetting(result, group, point));
  }
  return mean_and_spread(values).mean;
}

// Whether no sample of a group can have come yet: its first mix into the turn of the one before.
bool is_unseen(const RunResult& result, std::size_t group, std::size_t point) {
  const double end = end_of_group(result, group - 1);
  const double turn = end - (group > 1 ? end_of_group(result, group - 2) : 0);
  return static_cast<double>(result.points[point].samples_seen) <= end - result.overlap * turn;
}

// Mean over the groups that were seen, or over those that were not.
double accuracy_by_seen(const RunResult& result, std::size_t point, bool seen) {
  std::vector<double> values;
  for (std::size_t group = 0; group < result.order.size(); ++group) {
    const bool group_seen = group == 0 || !is_unseen(result, group, point);
    if (group_seen == seen) {
      values.push_back(accuracy_of(result.points[point], "linear_top1", result.order[group]));
    }
  }
  return mean_and_spread(values).mean;
}

}  // namespace

const Measure& measure(const std::string& name) {
  const auto& all = all_measures();
  const auto found = std::ranges::find(all, split_name(name).name, &Measure::name);
  if (found == all.end()) throw std::logic_error("no measure " + name);
  return *found;
}

std::string measure_label(const std::string& name) {
  const auto part = split_name(name).part;
  return part.empty() ? measure(name).label : cat(measure(name).label, ", ", part);
}

const std::vector<std::string>& accuracy_names() {
  static const std::vector<std::string> names = {"linear_top1", "linear_top5", "knn_top1"};
  return names;
}

bool is_accuracy(const std::string& name) {
  return std::ranges::find(accuracy_names(), name) != accuracy_names().end();
}

void require_measure(const std::string& name, const std::vector<std::string>& parts) {
  const auto [bare, part] = split_name(name);
  std::vector<std::string> names;
  for (const auto& each : all_measures()) {
    if (each.final_value) names.push_back(each.name);
  }
  if (std::ranges::find(names, bare) == names.end()) {
    throw Error(unknown_name("measure", bare, names));
  }
  if (!part.empty() && !parts.empty() && std::ranges::find(parts, part) == parts.end()) {
    throw Error(unknown_name("probe set or group", part, parts));
  }
}

void require_curve(const std::string& name, const std::vector<std::string>& parts,
                   const std::string& x) {
  if (x != "updates" && x != "samples") return require_measure(name, parts);
  const auto [bare, part] = split_name(name);
  std::vector<std::string> names;
  for (const auto& each : all_measures()) {
    if (each.per_point || !each.metric.empty()) names.push_back(each.name);
  }
  if (std::ranges::find(names, bare) == names.end()) {
    throw Error(unknown_name("measure over time", bare, names));
  }
  if (!part.empty() && std::ranges::find(parts, part) == parts.end()) {
    throw Error(unknown_name("probe set or group", part, parts));
  }
}

double point_value(const RunResult& result, std::size_t point, const std::string& name,
                   const std::string& set) {
  const auto [bare, part] = split_name(name);
  if (bare == "forgetting") return mean_forgetting(result, point);
  if (bare == "forgetting_first") {
    return result.order.empty() ? std::nan("") : forgetting(result, 0, point);
  }
  if (bare == "seen") return accuracy_by_seen(result, point, true);
  if (bare == "unseen") return accuracy_by_seen(result, point, false);
  if (bare == "share") {
    const auto found = result.points[point].share.find(part);
    return found == result.points[point].share.end() ? std::nan("") : found->second;
  }
  return accuracy_of(result.points[point], bare, part.empty() ? set : part);
}

double final_value(const RunResult& result, const std::string& name, const std::string& set) {
  const Measure& shown = measure(name);
  if (shown.per_point) {
    if (result.points.empty()) return std::nan("");
    return shown.factor * point_value(result, result.points.size() - 1, name, set);
  }
  if (!shown.mean_of.empty()) {
    const std::string part = split_name(name).part;
    const std::string of = part.empty() ? shown.mean_of : cat(shown.mean_of, '@', part);
    std::vector<double> values;
    for (std::size_t point = 0; point < result.points.size(); ++point) {
      values.push_back(point_value(result, point, of, set));
    }
    return mean_and_spread(values).mean;
  }
  const auto found = result.values.find(shown.name);
  return found == result.values.end() ? std::nan("") : shown.factor * found->second;
}

std::size_t end_point(const RunResult& result, std::size_t group) {
  const double end = end_of_group(result, group);
  const auto distance = [&](const ResultPoint& point) {
    return std::abs(static_cast<double>(point.samples_seen) - end);
  };
  return static_cast<std::size_t>(std::ranges::min_element(result.points, {}, distance) -
                                  result.points.begin());
}

double forgetting(const RunResult& result, std::size_t group, std::size_t point) {
  const std::size_t end = end_point(result, group);
  if (point < end) return std::nan("");
  const double before = accuracy_of(result.points[end], "linear_top1", result.order[group]);
  const double now = accuracy_of(result.points[point], "linear_top1", result.order[group]);
  return before > 0 ? 100 * (before - now) / before : std::nan("");
}

MeanAndSpread mean_and_spread(const std::vector<double>& values) {
  double sum = 0;
  double count = 0;
  for (const double value : values) {
    if (!std::isfinite(value)) continue;
    sum += value;
    ++count;
  }
  if (count == 0) return {std::nan(""), std::nan("")};
  const double mean = sum / count;
  double squares = 0;
  for (const double value : values) {
    if (std::isfinite(value)) squares += (value - mean) * (value - mean);
  }
  return {mean, count > 1 ? std::sqrt(squares / (count - 1)) : std::nan("")};
}

}  // namespace riffle

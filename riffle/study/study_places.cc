#include "riffle/study/study_places.h"

#include <algorithm>

namespace riffle {
namespace {

using Names = std::vector<std::string>;

bool within(const Place& run, const Place& place) {
  return std::ranges::all_of(place,
                             [&](const auto& item) { return run.at(item.first) == item.second; });
}

bool wanted(const Where& where, const Place& run) {
  return std::ranges::all_of(where, [&](const auto& choice) {
    return std::ranges::count(choice.second, run.at(choice.first)) > 0;
  });
}

const std::string& first_set(const Study& study) { return study.probe.sets.front().name; }

}  // namespace

Place joined(Place a, const Place& b) {
  a.insert(b.begin(), b.end());
  return a;
}

Names value_names(const StudyAxis& axis) {
  Names names;
  for (const auto& value : axis.values) names.push_back(value.name);
  return names;
}

std::string value_title(const Study& study, const std::string& axis, const std::string& value) {
  return study.axis(axis).value(value).title;
}

std::size_t value_index(const Study& study, const std::string& axis, const std::string& value) {
  const auto names = value_names(study.axis(axis));
  return static_cast<std::size_t>(std::ranges::find(names, value) - names.begin());
}

bool is_reference(const Study& study, const Place& place) {
  return std::ranges::any_of(
      place, [&](const auto& item) { return study.axis(item.first).value(item.second).reference; });
}

std::vector<std::size_t> runs_at(const StudyOutcome& outcome, const Where& where,
                                 const Place& place) {
  std::vector<std::size_t> found;
  for (std::size_t i = 0; i < outcome.runs.size(); ++i) {
    const auto& at = outcome.runs[i].at;
    if (outcome.results[i] && within(at, place) && wanted(where, at)) found.push_back(i);
  }
  return found;
}

std::vector<Place> places(const StudyOutcome& outcome, const Where& where, const Names& axes) {
  std::vector<Place> all = {{}};
  for (const auto& axis : axes) {
    std::vector<Place> longer;
    for (const auto& place : all) {
      for (const auto& value : value_names(outcome.study.axis(axis))) {
        longer.push_back(place);
        longer.back()[axis] = value;
      }
    }
    all = std::move(longer);
  }
  std::erase_if(all, [&](const Place& place) { return runs_at(outcome, where, place).empty(); });
  return all;
}

std::vector<double> values_at(const StudyOutcome& outcome, const Where& where, const Place& place,
                              const std::string& name) {
  std::vector<double> values;
  for (const auto run : runs_at(outcome, where, place)) {
    values.push_back(final_value(*outcome.results[run], name, first_set(outcome.study)));
  }
  return values;
}

MeanAndSpread value_at(const StudyOutcome& outcome, const Where& where, const Place& place,
                       const std::string& name) {
  return mean_and_spread(values_at(outcome, where, place, name));
}

MeanAndSpread untrained_value(const StudyOutcome& outcome, const Where& where,
                              const std::string& name) {
  std::vector<double> values;
  if (!measure(name).per_point) return mean_and_spread(values);
  // Runs with the same seed begin with the same network: it counts once.
  std::map<std::int64_t, double> by_seed;
  for (const auto run : runs_at(outcome, where, {})) {
    const RunResult& result = *outcome.results[run];
    if (result.points.empty() || result.points.front().update != 0) continue;
    by_seed[outcome.runs[run].seed] =
        measure(name).factor * point_value(result, 0, name, first_set(outcome.study));
  }
  for (const auto& [seed, value] : by_seed) values.push_back(value);
  return mean_and_spread(values);
}

}  // namespace riffle

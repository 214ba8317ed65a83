#include "riffle/study/study_figures.h"

#include <algorithm>
#include <cmath>

#include "riffle/base/text.h"
#include "riffle/report/bar_chart.h"
#include "riffle/report/line_chart.h"
#include "riffle/run/metrics_history.h"
#include "riffle/run/run_folder.h"
#include "riffle/study/pair_formula.h"
#include "riffle/study/study_places.h"

namespace riffle {
namespace {

using Names = std::vector<std::string>;

// A noisy curve is a mean over as many parts of it.
constexpr std::size_t kSmoothWindows = 60;

// A line over time. Two runs that both have a place there have it for the same evaluation, or the
// same update; no run has one twice.
struct Curve {
  std::vector<std::int64_t> places;
  std::vector<double> x;
  std::vector<double> y;
};

// Which of the study's evaluations those of a run are. Where one is missing, the places that the
// others have along the run tell.
std::vector<std::int64_t> evaluation_numbers(const RunResult& result, std::int64_t updates,
                                             std::int64_t points) {
  std::vector<std::int64_t> numbers;
  std::int64_t least = 0;
  std::int64_t most = points - std::ssize(result.points) + 1;
  for (const auto& point : result.points) {
    const auto nearest = (2 * point.update * points + updates) / (2 * updates);
    numbers.push_back(std::max(least, std::min(nearest, most)));
    least = numbers.back() + 1;
    ++most;
  }
  return numbers;
}

Curve curve_of(const StudyOutcome& outcome, std::size_t run, const Shown& shown,
               const std::string& name, const std::filesystem::path& out) {
  const Measure& drawn = measure(name);
  const RunResult& result = *outcome.results[run];
  Curve curve;
  if (drawn.per_point) {
    const ProbePlan& probe = outcome.study.probe;
    const auto& set = probe.sets.front().name;
    curve.places = evaluation_numbers(result, outcome.runs[run].config.learner.train.max_updates,
                                      probe.points);
    for (std::size_t i = 0; i < result.points.size(); ++i) {
      const auto& point = result.points[i];
      curve.x.push_back(
          static_cast<double>(shown.x == "samples" ? point.samples_seen : point.update));
      curve.y.push_back(drawn.factor * point_value(result, i, name, set));
    }
    return curve;
  }
  const MetricsHistory metrics =
      read_metrics(RunFolder::open(run_folder_of(out, outcome.runs[run])).metrics());
  MetricCurve values;
  if (drawn.metric == kFormulaMetric) {
    values = expected_same_clip_pairs(metrics);
  } else if (const MetricCurve* found = metrics.find(drawn.metric)) {
    values = *found;
  }
  if (values.updates.empty()) return curve;
  curve.x = shown.x == "samples" ? metrics.find("samples_seen")->values : values.updates;
  for (const double update : values.updates) curve.places.push_back(std::lround(update));
  for (const double value : values.values) curve.y.push_back(drawn.factor * value);
  curve.y = moving_mean(curve.y, curve.y.size() / kSmoothWindows);
  return curve;
}

LineSeries mean_curve(const std::vector<Curve>& curves) {
  struct Values {
    std::vector<double> x;
    std::vector<double> y;
  };
  std::map<std::int64_t, Values> at;
  for (const auto& curve : curves) {
    for (std::size_t i = 0; i < curve.x.size(); ++i) {
      at[curve.places[i]].x.push_back(curve.x[i]);
      at[curve.places[i]].y.push_back(curve.y[i]);
    }
  }
  LineSeries series;
  for (const auto& [place, values] : at) {
    const auto [mean, spread] = mean_and_spread(values.y);
    series.x.push_back(mean_and_spread(values.x).mean);
    series.y.push_back(mean);
    series.spread.push_back(std::isfinite(spread) ? spread : 0);
  }
  return series;
}

LineSeries line_over_axis(const StudyOutcome& outcome, const Shown& shown, const Place& place,
                          const std::string& name) {
  LineSeries series;
  auto values = value_names(outcome.study.axis(shown.x));
  std::ranges::sort(values, {}, [](const std::string& value) { return std::stod(value); });
  for (const auto& value : values) {
    const auto [mean, spread] =
        value_at(outcome, shown.where, joined(place, {{shown.x, value}}), name);
    series.x.push_back(std::stod(value));
    series.y.push_back(mean);
    series.spread.push_back(std::isfinite(spread) ? spread : 0);
  }
  return series;
}

LineSeries line_at(const StudyOutcome& outcome, const Shown& shown, const Place& place,
                   const std::string& name, const std::filesystem::path& out) {
  if (shown.x != "updates" && shown.x != "samples") {
    return line_over_axis(outcome, shown, place, name);
  }
  std::vector<Curve> curves;
  for (const auto run : runs_at(outcome, shown.where, place)) {
    curves.push_back(curve_of(outcome, run, shown, name, out));
  }
  return mean_curve(curves);
}

// The formula's line goes with that of what was measured: the same colour, dashed, without a name.
bool is_formula(const std::string& name) { return measure(name).metric == kFormulaMetric; }

std::int64_t measures_drawn(const Shown& shown) {
  return std::ranges::count_if(shown.values,
                               [](const std::string& name) { return !is_formula(name); });
}

std::string series_name(const Study& study, const Shown& shown, const Place& line,
                        const std::string& name) {
  Names words;
  if (!shown.line.empty()) words.push_back(value_title(study, shown.line, line.at(shown.line)));
  if (words.empty() || measures_drawn(shown) > 1) {
    const auto at = name.find('@');
    words.push_back(at == std::string::npos ? measure_label(name) : name.substr(at + 1));
  }
  return join(words, ", ");
}

// All measures of one line of a figure. Colours go by the place in the study, so that a thing keeps
// its own from panel to panel, whatever is missing.
void add_series(const StudyOutcome& outcome, const Shown& shown, const Place& panel,
                const Place& line, const std::filesystem::path& out, LineChart& chart) {
  const std::int64_t measured = measures_drawn(shown);
  std::int64_t first = 0;
  if (!shown.line.empty()) {
    const auto index = value_index(outcome.study, shown.line, line.at(shown.line));
    first = static_cast<std::int64_t>(index) * std::max<std::int64_t>(1, measured);
  }
  std::int64_t drawn = 0;
  for (const auto& name : shown.values) {
    LineSeries series = line_at(outcome, shown, joined(panel, line), name, out);
    if (is_formula(name) && measured > 0) {
      series.dashed = true;
    } else {
      series.name = series_name(outcome.study, shown, line, name);
      ++drawn;
    }
    series.colour = static_cast<Colour>(first + std::max<std::int64_t>(0, drawn - 1));
    if (std::ranges::all_of(series.spread, [](double value) { return value == 0; })) {
      series.spread.clear();
    }
    if (!series.x.empty()) chart.series.push_back(std::move(series));
  }
}

// A share that comes near to all is shown on the whole scale, not on one beyond 100 %.
bool reaches_all(const LineChart& chart) {
  return std::ranges::any_of(chart.series, [](const LineSeries& series) {
    return std::ranges::any_of(series.y, [](double value) { return value > 90; });
  });
}

std::string axis_label(const Shown& shown) {
  if (shown.x == "updates") return "updates";
  return shown.x == "samples" ? "samples seen" : shown.x;
}

}  // namespace

std::vector<Figure> study_lines(const StudyOutcome& outcome, const Shown& shown,
                                const std::filesystem::path& out) {
  const auto panels =
      places(outcome, shown.where, shown.panel.empty() ? Names{} : Names{shown.panel});
  std::vector<Figure> figures;
  for (const auto& panel : panels) {
    LineChart chart;
    chart.title = shown.title;
    chart.x_label = axis_label(shown);
    const Measure& first = measure(shown.values.front());
    chart.y_label = measures_drawn(shown) == 1 ? measure_label(shown.values.front()) : first.label;
    if (!first.unit.empty()) chart.y_label += cat(" (", first.unit, ")");
    if (panels.size() > 1) {  // two side by side
      chart.width = 460;
      chart.height = 340;
    }
    for (const auto& line :
         places(outcome, shown.where, shown.line.empty() ? Names{} : Names{shown.line})) {
      add_series(outcome, shown, panel, line, out, chart);
    }
    if (first.unit == "%" && reaches_all(chart)) {
      chart.y_low = 0;
      chart.y_high = 100;
    }
    const std::string title =
        shown.panel.empty() ? "" : value_title(outcome.study, shown.panel, panel.at(shown.panel));
    figures.push_back({title, chart.svg(), shown.panel.empty() ? shown.caption : ""});
  }
  return figures;
}

Figure study_bars(const StudyOutcome& outcome, const Shown& shown) {
  const std::string& name = shown.values.front();
  const Measure& drawn = measure(name);
  const std::string& axis = shown.rows.front();
  BarChart chart;
  chart.title = shown.title;
  chart.label = measure_label(name);
  if (!drawn.unit.empty()) chart.label += cat(" (", drawn.unit, ")");
  chart.decimals = drawn.decimals;
  for (const auto& place : places(outcome, shown.where, shown.rows)) {
    const std::string& value = place.at(axis);
    const auto [mean, spread] = value_at(outcome, shown.where, place, name);
    chart.bars.push_back({value_title(outcome.study, axis, value), mean, spread,
                          values_at(outcome, shown.where, place, name),
                          static_cast<Colour>(value_index(outcome.study, axis, value))});
  }
  const double untrained = untrained_value(outcome, shown.where, name).mean;
  if (std::isfinite(untrained)) chart.references.push_back({"untrained", untrained});
  return {"", chart.svg(), shown.caption};
}

}  // namespace riffle

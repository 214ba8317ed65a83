#include "riffle/study/study_tables.h"

#include <algorithm>
#include <cmath>

#include "riffle/base/text.h"
#include "riffle/report/line_chart.h"
#include "riffle/run/metrics_history.h"
#include "riffle/run/run_folder.h"
#include "riffle/study/measures.h"
#include "riffle/study/pair_formula.h"

namespace riffle {
namespace {

using Names = std::vector<std::string>;
using Place = std::map<std::string, std::string>;  // axis -> value, of some axes

constexpr std::size_t kSmoothWindows = 60;  // a noisy curve is a mean over so many parts of it

Names value_names(const StudyAxis& axis) {
  Names names;
  for (const auto& value : axis.values) names.push_back(value.name);
  return names;
}

std::string value_title(const Study& study, const std::string& axis, const std::string& value) {
  return study.axis(axis).value(value).title;
}

bool within(const Place& run, const Place& place) {
  return std::ranges::all_of(place,
                             [&](const auto& item) { return run.at(item.first) == item.second; });
}

bool wanted(const Shown& shown, const Place& run) {
  return std::ranges::all_of(shown.where, [&](const auto& choice) {
    return std::ranges::count(choice.second, run.at(choice.first)) > 0;
  });
}

// The runs of a table or figure, by their places in the outcome, in a part of its axes: those that
// have a result.
std::vector<std::size_t> runs_at(const StudyOutcome& outcome, const Shown& shown,
                                 const Place& place) {
  std::vector<std::size_t> found;
  for (std::size_t i = 0; i < outcome.runs.size(); ++i) {
    const auto& at = outcome.runs[i].at;
    if (outcome.results[i] && within(at, place) && wanted(shown, at)) found.push_back(i);
  }
  return found;
}

// Every combination of values of these axes that has a result, in the order of the file.
std::vector<Place> places(const StudyOutcome& outcome, const Shown& shown, const Names& axes) {
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
  std::erase_if(all, [&](const Place& place) { return runs_at(outcome, shown, place).empty(); });
  return all;
}

Place joined(Place a, const Place& b) {
  a.insert(b.begin(), b.end());
  return a;
}

MeanAndSpread value_at(const StudyOutcome& outcome, const Shown& shown, const Place& place,
                       const std::string& name) {
  const auto& set = outcome.study.probe.sets.front().name;
  std::vector<double> values;
  for (const auto run : runs_at(outcome, shown, place)) {
    values.push_back(final_value(*outcome.results[run], name, set));
  }
  return mean_and_spread(values);
}

// NaN where the paper has no number for exactly this.
double published_at(const Study& study, const Place& place, const std::string& name) {
  for (const auto& entry : study.published) {
    const auto value = entry.values.find(name);
    if (entry.at == place && value != entry.values.end()) return value->second;
  }
  return std::nan("");
}

bool is_reference(const Study& study, const Place& place) {
  return std::ranges::any_of(
      place, [&](const auto& item) { return study.axis(item.first).value(item.second).reference; });
}

struct ShownColumn {
  Place at;
  std::string measure;
  bool paper = false;
};

std::vector<ShownColumn> shown_columns(const StudyOutcome& outcome, const Shown& shown,
                                       const std::vector<Place>& rows) {
  std::vector<ShownColumn> columns;
  for (const auto& place : places(outcome, shown, shown.columns)) {
    for (const auto& name : shown.values) {
      columns.push_back({place, name, false});
      const bool paper = std::ranges::any_of(rows, [&](const Place& row) {
        return std::isfinite(published_at(outcome.study, joined(row, place), name));
      });
      if (paper) columns.push_back({place, name, true});
    }
  }
  return columns;
}

std::string column_name(const Study& study, const Shown& shown, const ShownColumn& column) {
  Names words;
  for (const auto& axis : shown.columns) {
    words.push_back(value_title(study, axis, column.at.at(axis)));
  }
  if (words.empty() || shown.values.size() > 1) words.push_back(measure_label(column.measure));
  if (column.paper) words.push_back("paper");
  return join(words, ", ");
}

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
    const auto [mean, spread] = value_at(outcome, shown, joined(place, {{shown.x, value}}), name);
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
  for (const auto run : runs_at(outcome, shown, place)) {
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
    const auto names = value_names(outcome.study.axis(shown.line));
    const auto place = std::ranges::find(names, line.at(shown.line)) - names.begin();
    first = place * std::max<std::int64_t>(1, measured);
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

Table study_table(const StudyOutcome& outcome, const Shown& shown) {
  const Study& study = outcome.study;
  const auto rows = places(outcome, shown, shown.rows);
  const auto columns = shown_columns(outcome, shown, rows);
  Table table;
  table.caption = shown.caption;
  for (const auto& axis : shown.rows) table.columns.push_back({axis});
  for (const auto& column : columns) {
    const Measure& shown_measure = measure(column.measure);
    // Rows of several axes are not all to be compared with one another.
    const bool comparable = !column.paper && shown.rows.size() == 1;
    table.columns.push_back({column_name(study, shown, column), shown_measure.unit,
                             comparable ? shown_measure.best : Best::none, true});
  }
  for (const auto& place : rows) {
    Row row;
    row.reference = is_reference(study, place);
    for (const auto& axis : shown.rows) {
      row.cells.push_back(Cell::words(value_title(study, axis, place.at(axis))));
    }
    for (const auto& column : columns) {
      const int decimals = measure(column.measure).decimals;
      const Place cell = joined(place, column.at);
      if (column.paper) {
        row.cells.push_back(Cell::number(published_at(study, cell, column.measure), decimals));
      } else {
        const auto [mean, spread] = value_at(outcome, shown, cell, column.measure);
        row.cells.push_back(Cell::number(mean, decimals, spread));
      }
    }
    table.rows.push_back(std::move(row));
  }
  return table;
}

std::vector<Figure> study_figures(const StudyOutcome& outcome, const Shown& shown,
                                  const std::filesystem::path& out) {
  const auto panels = places(outcome, shown, shown.panel.empty() ? Names{} : Names{shown.panel});
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
         places(outcome, shown, shown.line.empty() ? Names{} : Names{shown.line})) {
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

}  // namespace riffle

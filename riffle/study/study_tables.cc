#include "riffle/study/study_tables.h"

#include <algorithm>
#include <cmath>

#include "riffle/base/text.h"
#include "riffle/study/study_places.h"

namespace riffle {
namespace {

using Names = std::vector<std::string>;

// NaN where the paper has no number for exactly this.
double published_at(const Study& study, const Place& place, const std::string& name) {
  for (const auto& entry : study.published) {
    const auto value = entry.values.find(name);
    if (entry.at == place && value != entry.values.end()) return value->second;
  }
  return std::nan("");
}

struct ShownColumn {
  Place at;
  std::string measure;
  bool paper = false;
};

std::vector<ShownColumn> shown_columns(const StudyOutcome& outcome, const Shown& shown,
                                       const std::vector<Place>& rows) {
  std::vector<ShownColumn> columns;
  for (const auto& place : places(outcome, shown.where, shown.columns)) {
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

Row untrained_row(const StudyOutcome& outcome, const Shown& shown,
                  const std::vector<ShownColumn>& columns) {
  Row row;
  row.reference = true;
  row.cells.assign(shown.rows.size(), Cell::words("\u2013"));
  row.cells.front() = Cell::words("Untrained");
  for (const auto& column : columns) {
    const auto [mean, spread] = untrained_value(outcome, shown.where, column.measure);
    row.cells.push_back(
        Cell::number(column.paper ? std::nan("") : mean, measure(column.measure).decimals, spread));
  }
  return row;
}

}  // namespace

namespace {

// As the paper draws forgetting: the group that came i-th, after the turn of the j-th.
struct MatrixCell {
  std::vector<double> accuracy;
  std::vector<double> change;
};

MatrixCell matrix_cell(const StudyOutcome& outcome, const Shown& shown, const Place& place,
                       std::size_t group, std::size_t after) {
  MatrixCell cell;
  for (const auto run : runs_at(outcome, shown.where, place)) {
    const RunResult& result = *outcome.results[run];
    if (std::max(group, after) >= result.order.size() || result.points.empty()) continue;
    const auto accuracy = [&](std::size_t turn) {
      const std::string name = cat(shown.values.front(), '@', result.order[group]);
      return point_value(result, end_point(result, turn), name, "");
    };
    const double now = accuracy(after), own = accuracy(group);
    cell.accuracy.push_back(now);
    if (after > group && own > 0) cell.change.push_back(100 * (now - own) / own);
  }
  return cell;
}

Table forgetting_matrix(const StudyOutcome& outcome, const Shown& shown) {
  std::size_t groups = 0;
  for (const auto& result : outcome.results) {
    if (result) groups = std::max(groups, result->order.size());
  }
  Table table;
  table.caption = shown.caption;
  for (const auto& axis : shown.rows) table.columns.push_back({axis});
  table.columns.push_back({"group that came"});
  for (std::size_t after = 1; after <= groups; ++after) {
    table.columns.push_back(
        {cat(measure(shown.values.front()).label, " after turn ", after), "%", Best::none, true});
  }
  for (std::size_t after = 2; after <= groups; ++after) {
    table.columns.push_back({cat("change after turn ", after), "%", Best::none, true});
  }
  for (const auto& place : places(outcome, shown.where, shown.rows)) {
    for (std::size_t group = 0; group < groups; ++group) {
      Row row;
      row.reference = is_reference(outcome.study, place);
      for (const auto& axis : shown.rows) {
        row.cells.push_back(Cell::words(value_title(outcome.study, axis, place.at(axis))));
      }
      row.cells.push_back(Cell::words(std::to_string(group + 1)));
      std::vector<Cell> changes;
      for (std::size_t after = 0; after < groups; ++after) {
        const MatrixCell cell = matrix_cell(outcome, shown, place, group, after);
        const auto accuracy = mean_and_spread(cell.accuracy);
        const auto change = mean_and_spread(cell.change);
        row.cells.push_back(Cell::number(accuracy.mean, 1, accuracy.spread));
        if (after > 0) changes.push_back(Cell::number(change.mean, 1, change.spread));
      }
      row.cells.insert(row.cells.end(), changes.begin(), changes.end());
      table.rows.push_back(std::move(row));
    }
  }
  return table;
}

}  // namespace

Table study_table(const StudyOutcome& outcome, const Shown& shown) {
  if (shown.kind == Shown::Kind::matrix) return forgetting_matrix(outcome, shown);
  const Study& study = outcome.study;
  const auto rows = places(outcome, shown.where, shown.rows);
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
  if (shown.untrained) table.rows.push_back(untrained_row(outcome, shown, columns));
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
        const auto [mean, spread] = value_at(outcome, shown.where, cell, column.measure);
        row.cells.push_back(Cell::number(mean, decimals, spread));
      }
    }
    table.rows.push_back(std::move(row));
  }
  return table;
}

}  // namespace riffle

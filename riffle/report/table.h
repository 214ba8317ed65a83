// A table of a page: words on the left, numbers aligned on the right, the best of a column marked.
//
// table_text() gives the same table to a terminal; table_csv() gives it to a spreadsheet, with
// numbers in full precision and spreads in columns of their own.
#pragma once

#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "riffle/report/markup.h"

namespace riffle {

enum class Best { none, highest, lowest };

struct Column {
  std::string name = {};
  // Shown in the head: "%", "s".
  std::string unit = {};
  // The value of the column that is marked, among rows that are not references.
  Best best = Best::none;
  // Right-aligned; set for columns that hold numbers.
  bool numeric = false;
};

struct Cell {
  // Empty for a number.
  std::string text = {};
  double value = std::numeric_limits<double>::quiet_NaN();
  double spread = std::numeric_limits<double>::quiet_NaN();
  int decimals = 1;

  static Cell words(std::string text) { return {std::move(text)}; }
  // A value that is not finite is shown as a dash.
  static Cell number(double value, int decimals = 1,
                     double spread = std::numeric_limits<double>::quiet_NaN()) {
    return {{}, value, spread, decimals};
  }
};

struct Row {
  // One for each column.
  std::vector<Cell> cells = {};
  // A swatch in front of the first cell, to match a chart.
  Colour colour = kNoColour;
  // Set apart, and never the best.
  bool reference = false;

  static constexpr Colour kNoColour = -3;
};

struct Table {
  std::string caption = {};
  std::vector<Column> columns = {};
  std::vector<Row> rows = {};
};

// All throw std::logic_error if a row has another number of cells than the table has columns.
std::string table_html(const Table& table);
std::string table_text(const Table& table);
std::string table_csv(const Table& table);

}  // namespace riffle

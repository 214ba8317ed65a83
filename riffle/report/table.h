// A table of a page: words on the left, numbers aligned on the right, the best of a column marked.
//
// table_csv() gives the same table to a spreadsheet, with numbers in full precision and spreads in
// columns of their own.
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
  std::string unit = {};   // shown in the head: "%", "s"
  Best best = Best::none;  // which value of the column is marked, among rows that are no reference
  bool numeric = false;    // right-aligned; set for columns that hold numbers
};

struct Cell {
  std::string text = {};  // words; for a number, left empty
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
  std::vector<Cell> cells = {};  // as many as columns
  Colour colour = kNoColour;     // a swatch in front of the first cell, to match a chart
  bool reference = false;        // set apart, and never the best

  static constexpr Colour kNoColour = -3;
};

struct Table {
  std::string caption = {};
  std::vector<Column> columns = {};
  std::vector<Row> rows = {};
};

// Both throw std::logic_error when a row has another number of cells than the table has columns.
std::string table_html(const Table& table);
std::string table_csv(const Table& table);

}  // namespace riffle

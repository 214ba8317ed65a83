#include "riffle/report/table.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <stdexcept>

#include "riffle/base/csv.h"
#include "riffle/base/text.h"

namespace riffle {
namespace {

void check_shape(const Table& table) {
  for (const auto& row : table.rows) {
    if (row.cells.size() != table.columns.size()) {
      throw std::logic_error(cat("a row of table '", table.caption, "' has ", row.cells.size(),
                                 " cells, the table has ", table.columns.size(), " columns"));
    }
  }
}

bool has_spread(const Cell& cell) {
  return std::isfinite(cell.value) && std::isfinite(cell.spread);
}

std::string spread_text(const Cell& cell) {
  return cat("\u00b1\u202f", fixed(cell.spread, cell.decimals));
}

// "-" of the C library is a hyphen; numbers are set with the minus sign.
std::string number_text(const Cell& cell) {
  const std::string text = fixed(cell.value, cell.decimals);
  if (!text.starts_with('-')) return text;
  const bool zero = text.find_first_not_of("-0.") == std::string::npos;
  return zero ? text.substr(1) : "\u2212" + text.substr(1);
}

// What a reader sees decides who is best: two values that read the same are both marked.
std::string best_text(const Table& table, std::size_t column) {
  const Best best = table.columns[column].best;
  const Cell* leader = nullptr;
  std::size_t rivals = 0;
  for (const auto& row : table.rows) {
    const Cell& cell = row.cells[column];
    if (row.reference || best == Best::none || !std::isfinite(cell.value)) continue;
    ++rivals;
    const bool ahead = leader == nullptr || (best == Best::highest ? cell.value > leader->value
                                                                   : cell.value < leader->value);
    if (ahead) leader = &cell;
  }
  return rivals > 1 ? number_text(*leader) : "";
}

// Characters of the widest spread in a column: cells without one keep the same room, so that the
// digits line up.
std::size_t spread_room(const Table& table, std::size_t column) {
  std::size_t room = 0;
  for (const auto& row : table.rows) {
    const Cell& cell = row.cells[column];
    if (has_spread(cell)) room = std::max(room, fixed(cell.spread, cell.decimals).size() + 2);
  }
  return room;
}

std::string exact(double value) {
  if (!std::isfinite(value)) return "";
  char text[32];
  const auto end = std::to_chars(text, text + sizeof text, value).ptr;
  return std::string(text, end);
}

std::string head_text(const Column& column) {
  return column.unit.empty() ? column.name : cat(column.name, " (", column.unit, ')');
}

// As a terminal shows it: each character of UTF-8 takes one place.
std::size_t shown_width(const std::string& text) {
  return static_cast<std::size_t>(
      std::ranges::count_if(text, [](char c) { return (c & 0xC0) != 0x80; }));
}

std::string padded(const std::string& text, std::size_t width, bool right) {
  const std::string room(width - std::min(width, shown_width(text)), ' ');
  return right ? room + text : text + room;
}

// With as much room for a spread as the column needs, so that the digits line up.
std::string plain_cell(const Cell& cell, std::size_t spread_places) {
  std::string text = cell.text;
  if (std::isfinite(cell.value)) {
    text = number_text(cell);
  } else if (text.empty()) {
    text = "\u2013";
  }
  if (spread_places == 0) return text;
  const std::string spread =
      has_spread(cell) ? cat("\u00b1 ", fixed(cell.spread, cell.decimals)) : "";
  return cat(text, ' ', padded(spread, spread_places, /*right=*/false));
}

}  // namespace

std::string table_text(const Table& table) {
  check_shape(table);
  std::vector<std::string> lines(table.rows.size() + 1);
  for (std::size_t i = 0; i < table.columns.size(); ++i) {
    const std::size_t room = spread_room(table, i);
    std::vector<std::string> column = {head_text(table.columns[i])};
    for (const auto& row : table.rows) column.push_back(plain_cell(row.cells[i], room));
    std::size_t width = 0;
    for (const auto& text : column) width = std::max(width, shown_width(text));
    for (std::size_t line = 0; line < lines.size(); ++line) {
      lines[line] += "  " + padded(column[line], width, table.columns[i].numeric);
    }
  }
  std::string out;
  for (const auto& line : lines) out += line.substr(0, line.find_last_not_of(' ') + 1) + '\n';
  return out;
}

std::string table_html(const Table& table) {
  check_shape(table);
  // Rows named by two columns leave little room: the first stays on one line, the others stand
  // closer.
  const bool two_names = table.columns.size() > 1 && !table.columns[1].numeric;
  std::string out =
      cat("<div class=\"table scroll\"><table", two_names ? " class=\"two-names\"" : "", ">\n");
  if (!table.caption.empty())
    out += cat("<caption><span>", escape(table.caption), "</span></caption>\n");
  out += "<thead><tr>";
  for (const auto& column : table.columns) {
    out += cat("<th scope=\"col\"", column.numeric ? " class=\"n\"" : "", '>', escape(column.name));
    if (!column.unit.empty())
      out += cat(" <span class=\"unit\">(", escape(column.unit), ")</span>");
    out += "</th>";
  }
  out += "</tr></thead>\n<tbody>\n";

  std::vector<std::string> best;
  std::vector<std::size_t> room;
  for (std::size_t i = 0; i < table.columns.size(); ++i) {
    best.push_back(best_text(table, i));
    room.push_back(spread_room(table, i));
  }
  for (const auto& row : table.rows) {
    out += row.reference ? "<tr class=\"reference\">" : "<tr>";
    for (std::size_t i = 0; i < row.cells.size(); ++i) {
      const Cell& cell = row.cells[i];
      const bool is_number = std::isfinite(cell.value);
      const bool is_best =
          is_number && !row.reference && !best[i].empty() && number_text(cell) == best[i];
      std::string css = table.columns[i].numeric ? "n" : "";
      const bool has_swatch = i == 0 && row.colour != Row::kNoColour;
      if (has_swatch) css += " marked";
      if (is_best) css += " best";
      if (!is_number && cell.text.empty()) css += " none";
      const std::string tag = i == 0 && !table.columns[i].numeric ? "th" : "td";
      out += cat('<', tag, tag == "th" ? " scope=\"row\"" : "");
      if (!css.empty()) out += cat(" class=\"", css.substr(css.starts_with(' ') ? 1 : 0), '"');
      if (is_best) out += " title=\"best of this column\"";
      out += ">";
      if (has_swatch) {
        out += cat("<span class=\"swatch ", colour_class(row.colour, 0), "\"></span>");
      }
      if (is_number) {
        out += number_text(cell);
      } else {
        out += cell.text.empty() ? "\u2013" : escape(cell.text);
      }
      if (room[i] > 0) {
        out += cat("<span class=\"spread\" style=\"min-width:calc(", room[i], "ch + 0.35em)\">",
                   has_spread(cell) ? spread_text(cell) : "", "</span>");
      }
      out += cat("</", tag, '>');
    }
    out += "</tr>\n";
  }
  return out + "</tbody></table></div>\n";
}

std::string table_csv(const Table& table) {
  check_shape(table);
  std::vector<bool> spreads;
  std::string out;
  for (std::size_t i = 0; i < table.columns.size(); ++i) {
    const auto& column = table.columns[i];
    spreads.push_back(spread_room(table, i) > 0);
    const std::string name = head_text(column);
    out += cat(i > 0 ? "," : "", csv_field(name));
    if (spreads[i]) out += cat(',', csv_field(name + " spread"));
  }
  out += '\n';
  for (const auto& row : table.rows) {
    for (std::size_t i = 0; i < row.cells.size(); ++i) {
      const Cell& cell = row.cells[i];
      out += cat(i > 0 ? "," : "",
                 std::isfinite(cell.value) ? exact(cell.value) : csv_field(cell.text));
      if (spreads[i]) out += cat(',', has_spread(cell) ? exact(cell.spread) : "");
    }
    out += '\n';
  }
  return out;
}

}  // namespace riffle

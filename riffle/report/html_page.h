// One self-contained page: a title, sections, paragraphs, tables, charts and pictures in a single
// HTML file that needs no network, no script and no other file.
//
// Things appear in the order in which they are added. All text is escaped; only figures take ready
// markup (a chart's svg()). Light or dark follows the reader's system; print is light.
//
//   HtmlPage page("Four buffers, one stream", "What a buffer keeps decides what is learned.");
//   page.section("Accuracy");
//   page.table(table);
//   page.figure({"Accuracy over time", chart.svg(), "Mean of three seeds."});
//   write_atomically("report.html", page.html());
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "riffle/report/table.h"

namespace riffle {

struct Figure {
  // Title and caption may be empty.
  std::string title = {};
  // From a chart's svg(): not escaped.
  std::string svg = {};
  std::string caption = {};
};

struct PictureFigure {
  std::string title = {};
  // From encode_png().
  std::vector<std::byte> png = {};
  std::string caption = {};
  // A description for those who cannot see it; the title if empty.
  std::string alt = {};
  // Small pictures are enlarged without smoothing.
  bool pixelated = false;
  // How much larger than its pixels it is shown, where there is room.
  int scale = 1;
};

class HtmlPage {
 public:
  HtmlPage(std::string title, std::string lead);

  // Begins a section. With four or more, a line of links to them stands above the first.
  void section(const std::string& title);
  void paragraph(const std::string& text);
  // Adds a sentence that must not be missed, such as the finding.
  void note(const std::string& text);
  // Adds a few large figures side by side: {"updates", "3,000"}.
  void facts(const std::vector<std::pair<std::string, std::string>>& facts);
  void table(const Table& table);
  void figure(const Figure& figure);
  // Adds figures side by side where there is room.
  void figures(std::span<const Figure> figures);
  // Both throw std::logic_error if the bytes are not a PNG.
  void picture(const PictureFigure& picture);
  void pictures(std::span<const PictureFigure> pictures);
  // Adds commands or a configuration, as they are.
  void code(const std::string& text);
  // Adds the same, folded away under its summary.
  void folded_code(const std::string& summary, const std::string& text);
  void footer(const std::string& text);

  std::string html() const;

 private:
  std::string title_;
  std::string lead_;
  std::string body_;
  std::string footer_;
  std::vector<std::string> sections_;
};

}  // namespace riffle

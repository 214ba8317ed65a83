#include "riffle/report/html_page.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <stdexcept>

#include "riffle/base/text.h"
#include "riffle/report/markup.h"
#include "riffle/report/style.h"

namespace riffle {
namespace {

struct PngSize {
  std::uint32_t width;
  std::uint32_t height;
};

// Width and height from the header chunk: known before the picture is shown, the page does not
// jump.
PngSize png_size(std::span<const std::byte> png) {
  static constexpr std::array<unsigned char, 8> kSignature = {0x89, 'P',  'N',  'G',
                                                              0x0D, 0x0A, 0x1A, 0x0A};
  const auto same = [](unsigned char a, std::byte b) { return std::byte{a} == b; };
  if (png.size() < 24 || !std::equal(kSignature.begin(), kSignature.end(), png.begin(), same)) {
    throw std::logic_error("a picture of a page must be PNG bytes");
  }
  const auto number = [&](std::size_t at) {
    std::uint32_t value = 0;
    for (std::size_t i = 0; i < 4; ++i) {
      value = value << 8 | std::to_integer<std::uint32_t>(png[at + i]);
    }
    return value;
  };
  return {number(16), number(20)};
}

std::string figure_html(const std::string& title, const std::string& content,
                        const std::string& caption) {
  std::string out = "<figure>\n";
  if (!title.empty()) out += cat("<h3>", escape(title), "</h3>\n");
  out += cat("<div class=\"scroll\">\n", content, "</div>\n");
  if (!caption.empty()) out += cat("<figcaption>", escape(caption), "</figcaption>\n");
  return out + "</figure>\n";
}

std::string figure_html(const Figure& figure) {
  return figure_html(figure.title, figure.svg, figure.caption);
}

std::string figure_html(const PictureFigure& picture) {
  const PngSize size = png_size(picture.png);
  const auto scale = static_cast<std::uint32_t>(std::max(1, picture.scale));
  const std::string image =
      cat("<img", picture.pixelated ? " class=\"pixels\"" : "", " width=\"", size.width * scale,
          "\" height=\"", size.height * scale, "\" alt=\"",
          escape(picture.alt.empty() ? picture.title : picture.alt),
          "\" src=\"data:image/png;base64,", base64(picture.png), "\"/>\n");
  return figure_html(picture.title, image, picture.caption);
}

template <typename Item>
std::string row_html(std::span<const Item> items, bool in_pairs) {
  std::string out = cat("<div class=\"row", in_pairs ? " pairs" : "", "\">\n");
  for (const auto& item : items) out += figure_html(item);
  return out + "</div>\n";
}

}  // namespace

HtmlPage::HtmlPage(std::string title, std::string lead)
    : title_(std::move(title)), lead_(std::move(lead)) {}

void HtmlPage::section(const std::string& title) {
  if (!sections_.empty()) body_ += "</section>\n";
  sections_.push_back(title);
  // What was added before the first section belongs to the head of the page and needs no section of
  // its own.
  body_ += cat("<section id=\"s", sections_.size(), "\">\n<h2>", escape(title), "</h2>\n");
}

void HtmlPage::paragraph(const std::string& text) { body_ += cat("<p>", escape(text), "</p>\n"); }

void HtmlPage::note(const std::string& text) {
  body_ += cat("<p class=\"note\">", escape(text), "</p>\n");
}

void HtmlPage::facts(const std::vector<std::pair<std::string, std::string>>& facts) {
  body_ += "<dl class=\"facts\">\n";
  for (const auto& [name, value] : facts) {
    body_ += cat("<div><dt>", escape(name), "</dt><dd>", escape(value), "</dd></div>\n");
  }
  body_ += "</dl>\n";
}

void HtmlPage::table(const Table& table) { body_ += table_html(table); }

void HtmlPage::figure(const Figure& figure) { body_ += figure_html(figure); }
void HtmlPage::figures(std::span<const Figure> figures) { body_ += row_html(figures, true); }
void HtmlPage::picture(const PictureFigure& picture) { body_ += figure_html(picture); }
void HtmlPage::pictures(std::span<const PictureFigure> pictures) {
  // Three columns, unless that would leave one picture alone in the last row.
  body_ += row_html(pictures, pictures.size() == 2 || pictures.size() == 4);
}

void HtmlPage::code(const std::string& text) {
  body_ += cat("<pre><code>", escape(text), "</code></pre>\n");
}

void HtmlPage::folded_code(const std::string& summary, const std::string& text) {
  body_ += cat("<details><summary>", escape(summary), "</summary><pre><code>", escape(text),
               "</code></pre></details>\n");
}

void HtmlPage::footer(const std::string& text) { footer_ = text; }

std::string HtmlPage::html() const {
  // The policy makes the promise binding: a browser will fetch nothing for this page.
  std::string out =
      cat("<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\"/>\n",
          "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"/>\n",
          "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; ",
          "img-src data:; style-src 'unsafe-inline'\"/>\n", "<title>", escape(title_),
          "</title>\n<style>", colour_style(), chart_style(), page_style(),
          "</style>\n</head>\n<body>\n<header>\n<h1>", escape(title_), "</h1>\n");
  if (!lead_.empty()) out += cat("<p class=\"lead\">", escape(lead_), "</p>\n");
  if (sections_.size() >= 4) {
    out += "<nav aria-label=\"Sections\">";
    for (std::size_t i = 0; i < sections_.size(); ++i) {
      out += cat("<a href=\"#s", i + 1, "\">", escape(sections_[i]), "</a>");
    }
    out += "</nav>\n";
  }
  out += cat("</header>\n<main>\n", body_, sections_.empty() ? "" : "</section>\n", "</main>\n");
  if (!footer_.empty()) out += cat("<footer><p>", escape(footer_), "</p></footer>\n");
  return out + "</body>\n</html>\n";
}

}  // namespace riffle

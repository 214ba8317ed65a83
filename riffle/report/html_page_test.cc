#include "riffle/report/html_page.h"

#include <limits>
#include <stdexcept>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "riffle/image/codec.h"
#include "riffle/report/line_chart.h"
#include "riffle/report/testing/markup_check.h"

namespace riffle {
namespace {

using testing::HasSubstr;
using testing::Not;

Table accuracies() {
  Table table{
      "After 3,000 updates.",
      {{"mode"}, {"linear top-1", "%", Best::highest, true}, {"time", "s", Best::lowest, true}},
      {}};
  table.rows = {{{Cell::words("FIFO"), Cell::number(25.04, 1, 1.2), Cell::number(40)}, 0},
                {{Cell::words("MinRed"), Cell::number(35.42, 1, 10.1), Cell::number(43)}, 1},
                {{Cell::words("reservoir"), Cell::number(35.38), Cell::number(41)}, 2},
                {{Cell::words("decorrelated"), Cell::number(41), Cell::number(30)}, 3, true}};
  return table;
}

TEST(Escape, LeavesNothingThatMarkupReads) {
  EXPECT_EQ(escape("<a href=\"x\">'&'</a>"),
            "&lt;a href=&quot;x&quot;&gt;&#39;&amp;&#39;&lt;/a&gt;");
  EXPECT_EQ(escape("gr\u00fcn \u00b1"), "gr\u00fcn \u00b1");
  EXPECT_EQ(escape(std::string("a\0b\x1b", 4)), "a\uFFFDb\uFFFD");
}

TEST(Base64, MatchesTheVectorsOfTheStandard) {
  const auto encoded = [](std::string_view text) {
    return base64(std::as_bytes(std::span(text.data(), text.size())));
  };
  EXPECT_EQ(encoded(""), "");
  EXPECT_EQ(encoded("f"), "Zg==");
  EXPECT_EQ(encoded("fo"), "Zm8=");
  EXPECT_EQ(encoded("foo"), "Zm9v");
  EXPECT_EQ(encoded("foobar"), "Zm9vYmFy");
  EXPECT_EQ(encoded("\xff\xef"), "/+8=");
}

TEST(Table, MarksTheBestOfAColumnButNeverAReference) {
  const std::string html = table_html(accuracies());
  EXPECT_EQ(markup_fault(html), "");
  // 35.42 and 35.38 both read 35.4: the reader sees a tie, so both are marked.
  EXPECT_EQ(count_of(html, "best of this column"), 3);
  EXPECT_THAT(html, HasSubstr("title=\"best of this column\">40.0"));
  EXPECT_THAT(html, Not(HasSubstr("title=\"best of this column\">30.0")));
  EXPECT_THAT(html, Not(HasSubstr("title=\"best of this column\">41.0")));
  EXPECT_THAT(html, HasSubstr("\u00b1\u202f10.1"));
}

TEST(Table, ShowsADashForAMissingNumber) {
  Table table{"", {{"mode"}, {"top-1", "", Best::highest, true}}, {}};
  table.rows = {{{Cell::words("a"), Cell::number(std::numeric_limits<double>::quiet_NaN())}},
                {{Cell::words("b"), Cell::number(-1.5)}},
                {{Cell::words("c"), Cell::number(-0.01)}}};
  const std::string html = table_html(table);
  EXPECT_THAT(html, HasSubstr("class=\"n none\">\u2013<"));
  EXPECT_THAT(html, HasSubstr("\u22121.5"));
  EXPECT_THAT(html, Not(HasSubstr("\u22120.0"))) << "a zero has no sign";
  EXPECT_THAT(html, Not(HasSubstr("nan")));
}

TEST(Table, RefusesARowOfAnotherLength) {
  Table table = accuracies();
  table.rows[1].cells.pop_back();
  EXPECT_THROW(table_html(table), std::logic_error);
  EXPECT_THROW(table_csv(table), std::logic_error);
}

TEST(Table, StandsInColumnsOnATerminal) {
  Table table = accuracies();
  table.rows[3].cells[2] = Cell::number(std::numeric_limits<double>::quiet_NaN());
  EXPECT_EQ(table_text(table),
            "  mode          linear top-1 (%)  time (s)\n"
            "  FIFO               25.0 \u00b1 1.2       40.0\n"
            "  MinRed             35.4 \u00b1 10.1      43.0\n"
            "  reservoir          35.4             41.0\n"
            "  decorrelated       41.0                \u2013\n");
}

TEST(Table, GivesTheSameNumbersAsCsv) {
  Table table = accuracies();
  table.rows[0].cells[0] = Cell::words("FIFO, \"first\"");
  EXPECT_EQ(table_csv(table),
            "mode,linear top-1 (%),linear top-1 (%) spread,time (s)\n"
            "\"FIFO, \"\"first\"\"\",25.04,1.2,40\n"
            "MinRed,35.42,10.1,43\n"
            "reservoir,35.38,,41\n"
            "decorrelated,41,,30\n");
}

HtmlPage full_page(const std::string& words) {
  HtmlPage page(words, words);
  page.note(words);
  page.section(words);
  page.paragraph(words);
  page.facts({{words, words}});
  Table table = accuracies();
  table.caption = table.columns[0].name = table.columns[1].unit = words;
  table.rows[0].cells[0] = Cell::words(words);
  page.table(table);
  LineChart chart;
  chart.series = {{words, {0, 1}, {1, 2}, {}}};
  page.figure({words, chart.svg(), words});
  page.figures(std::vector<Figure>{{words, chart.svg(), words}, {words, chart.svg(), words}});
  const PictureFigure picture{words, encode_png(Picture(7, 5)), words, words};
  page.picture(picture);
  page.pictures(std::vector{picture, picture});
  page.code(words);
  page.folded_code(words, words);
  page.footer(words);
  return page;
}

TEST(HtmlPage, IsWellFormedAndEscapesAllText) {
  const std::string html = full_page("</p><script src=\"http://x/\">&\"'").html();
  EXPECT_EQ(markup_fault(html), "");
  EXPECT_THAT(html, Not(HasSubstr("<script")));
}

TEST(HtmlPage, RefersToNothingOutsideItself) {
  const std::string html = full_page("words").html();
  EXPECT_THAT(html, Not(HasSubstr("://")));
  EXPECT_THAT(html, Not(HasSubstr("url(")));
  EXPECT_THAT(html, Not(HasSubstr("@import")));
  EXPECT_THAT(html, Not(HasSubstr("<link")));
  EXPECT_THAT(html, HasSubstr("default-src 'none'"));
  for (const auto& source : texts_between(html, " src=\"", "\"")) {
    EXPECT_TRUE(source.starts_with("data:")) << source;
  }
  for (const auto& target : texts_between(html, " href=\"", "\"")) {
    EXPECT_TRUE(target.starts_with("#")) << target;
  }
}

TEST(HtmlPage, EmbedsPicturesWithTheirSize) {
  HtmlPage page("t", "");
  const auto png = encode_png(Picture(7, 5));
  page.picture({"sheet", png, "", "", true, 4});
  const std::string html = page.html();
  EXPECT_THAT(html, HasSubstr("class=\"pixels\" width=\"28\" height=\"20\" alt=\"sheet\""));
  EXPECT_THAT(html, HasSubstr("data:image/png;base64," + base64(png)));
}

TEST(HtmlPage, RefusesAPictureThatIsNoPng) {
  HtmlPage page("t", "");
  EXPECT_THROW(page.picture({"x", std::vector<std::byte>(40), "", ""}), std::logic_error);
  EXPECT_THROW(page.picture({"x", {}, "", ""}), std::logic_error);
}

TEST(HtmlPage, LinksToItsSectionsWhenThereAreMany) {
  HtmlPage page("t", "l");
  for (const char* name : {"one", "two", "three"}) page.section(name);
  EXPECT_THAT(page.html(), Not(HasSubstr("<nav")));
  page.section("four");
  EXPECT_THAT(page.html(), HasSubstr("<a href=\"#s4\">four</a>"));
  EXPECT_THAT(page.html(), HasSubstr("<section id=\"s4\">"));
}

TEST(HtmlPage, WithoutContentIsStillAPage) {
  EXPECT_EQ(markup_fault(HtmlPage("t", "").html()), "");
}

}  // namespace
}  // namespace riffle

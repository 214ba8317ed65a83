#include <cmath>
#include <limits>
#include <sstream>
#include <stdexcept>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "riffle/base/text.h"
#include "riffle/report/bar_chart.h"
#include "riffle/report/line_chart.h"
#include "riffle/report/markup.h"
#include "riffle/report/style.h"
#include "riffle/report/testing/markup_check.h"

namespace riffle {
namespace {

using testing::HasSubstr;
using testing::Not;

const double kNan = std::numeric_limits<double>::quiet_NaN();

LineChart two_lines() {
  LineChart chart;
  chart.title = "accuracy over updates";
  chart.x_label = "updates";
  chart.y_label = "linear top-1 (%)";
  chart.series = {{"FIFO", {0, 500, 1000}, {14, 20, 25}, {}},
                  {"MinRed", {0, 500, 1000}, {14, 28, 36}, {}}};
  return chart;
}

TEST(MarkupFault, FindsWhatIsNotWellFormed) {
  EXPECT_EQ(markup_fault("<a b=\"1\"><c/>x &amp; y</a>"), "");
  for (const char* bad : {"<a>", "<a></b>", "</a>", "<a b=1/>", "<a b=\"1\" b=\"2\"/>", "a & b",
                          "<a", "1 < 2", "<a b=\"<\"/>"}) {
    EXPECT_NE(markup_fault(bad), "") << bad;
  }
}

TEST(LineChart, IsWellFormedAndRefersToNothingOutside) {
  const std::string svg = two_lines().svg();
  EXPECT_EQ(markup_fault(svg), "");
  EXPECT_THAT(svg, Not(HasSubstr("http")));
  EXPECT_THAT(svg, HasSubstr("linear top-1 (%)"));
  EXPECT_EQ(count_of(svg, "<path d="), 2);
  EXPECT_THAT(svg, HasSubstr("<title>MinRed: 36 at 1,000 updates</title>"));
}

TEST(LineChart, ALineThatEndsEarlyIsNotDrawnOn) {
  auto chart = two_lines();
  chart.series[0] = {"FIFO", {0, 500}, {14, 20}, {}};
  const std::string svg = chart.svg();
  const auto start_of = [&](std::size_t from) {
    const auto at = svg.find(" d=\"M", svg.find("class=\"leader", from)) + 5;
    return svg.substr(at, svg.find(' ', at) - at);
  };
  EXPECT_EQ(start_of(0), start_of(svg.find("class=\"leader") + 1)) << "both begin in the margin";
}

TEST(LineChart, EscapesEveryName) {
  auto chart = two_lines();
  chart.title = chart.x_label = chart.y_label = "a < \"b\" & 'c'";
  chart.series[0].name = "<script>alert(1)</script>";
  chart.references = {{"</svg>", 20}};
  const std::string svg = chart.svg();
  EXPECT_EQ(markup_fault(svg), "");
  EXPECT_THAT(svg, Not(HasSubstr("<script")));
  EXPECT_EQ(count_of(svg, "</svg>"), 1);
}

TEST(LineChart, KeepsItsMarksInsideTheDrawing) {
  auto chart = two_lines();
  chart.series[0].spread = {3, 5, 9};
  chart.references = {{"untrained", -4}};
  const std::string svg = chart.svg();
  int seen = 0;
  for (const auto& path : texts_between(svg, " d=\"M", "\"")) {
    std::istringstream numbers(path);
    double x = 0;
    double y = 0;
    char line_to = 0;
    while (numbers >> x >> y) {
      EXPECT_GE(x, 0);
      EXPECT_LE(x, chart.width);
      EXPECT_GE(y, 0);
      EXPECT_LE(y, chart.height);
      ++seen;
      numbers >> line_to;
    }
  }
  EXPECT_GE(seen, 8);
}

TEST(LineChart, LeavesRoomForTheTextOfTheLastTick) {
  auto chart = two_lines();
  for (auto& series : chart.series) {
    series.name.clear();
    series.x = {0, 3000, 6000};
  }
  const std::string svg = chart.svg();
  const auto places = texts_between(svg, "class=\"x\" x=\"", "\"");
  ASSERT_FALSE(places.empty());
  EXPECT_THAT(svg, HasSubstr(">6,000<"));
  EXPECT_LE(std::stod(places.back()) + text_width("6,000", 12) / 2 + 5, chart.width);
}

TEST(LineChart, WithoutDataSaysSo) {
  EXPECT_THAT(LineChart().svg(), HasSubstr("no data"));
  LineChart chart;
  chart.series = {{"empty", {}, {}, {}}, {"missing", {1, 2}, {kNan, kNan}, {}}};
  EXPECT_THAT(chart.svg(), HasSubstr("no data"));
  EXPECT_EQ(markup_fault(chart.svg()), "");
}

TEST(LineChart, OnePointIsADot) {
  LineChart chart;
  chart.series = {{"one", {3}, {5}, {}}};
  const std::string svg = chart.svg();
  EXPECT_EQ(count_of(svg, "<path d="), 0);
  EXPECT_THAT(svg, HasSubstr("class=\"dot\""));
  EXPECT_THAT(svg, Not(HasSubstr("nan")));
}

TEST(LineChart, ValuesThatAreNotFiniteLeaveAGap) {
  LineChart chart;
  chart.series = {{"a", {0, 1, 2, 3, 4, 5}, {1, 2, kNan, 4, 5, INFINITY}, {}}};
  const std::string svg = chart.svg();
  EXPECT_EQ(count_of(svg, "<path d="), 2);
  EXPECT_THAT(svg, Not(HasSubstr("nan")));
  EXPECT_THAT(svg, Not(HasSubstr("inf")));
}

TEST(LineChart, LogAxisDropsWhatIsNotPositive) {
  LineChart chart;
  chart.x_scale = chart.y_scale = Scale::log;
  chart.series = {{"a", {0, 1, 10, 100, 1000}, {1, 1e-3, 0, 1e-2, 1e-1}, {0, 0, 0, 1, 0}}};
  const std::string svg = chart.svg();
  EXPECT_EQ(markup_fault(svg), "");
  EXPECT_THAT(svg, Not(HasSubstr("nan")));
  EXPECT_THAT(svg, Not(HasSubstr("inf")));
  EXPECT_EQ(count_of(svg, "<path d="), 1);
  EXPECT_EQ(count_of(svg, "<title>"), 3);
}

TEST(LineChart, LongSeriesAreThinnedButKeepTheirPeaks) {
  LineChart chart;
  LineSeries series{"noise", {}, {}, {}};
  for (int i = 0; i < 200000; ++i) {
    series.x.push_back(i);
    series.y.push_back(i == 77777 ? 9.0 : 1.0 + 0.001 * (i % 7));
  }
  chart.series = {series};
  const std::string svg = chart.svg();
  EXPECT_LT(svg.size(), 100'000u);
  chart.series[0].y[77777] = 1.0;
  EXPECT_NE(svg, chart.svg());
}

TEST(MovingMean, AveragesNeighboursAndKeepsGaps) {
  const auto means = moving_mean({1, 2, 3, kNan, 5, 9}, 3);
  EXPECT_DOUBLE_EQ(means[0], 1.5);
  EXPECT_DOUBLE_EQ(means[1], 2);
  EXPECT_DOUBLE_EQ(means[2], 2.5);
  EXPECT_TRUE(std::isnan(means[3]));
  EXPECT_DOUBLE_EQ(means[4], 7);
  EXPECT_EQ(moving_mean({4, 5}, 1), (std::vector<double>{4, 5}));
  EXPECT_TRUE(moving_mean({}, 5).empty());
}

TEST(MovingMean, LeavesAConstantAsItIs) {
  const std::vector<double> rates(500, 0.03);
  EXPECT_EQ(moving_mean(rates, 1), rates);
  EXPECT_EQ(moving_mean(rates, 8), rates);
}

TEST(LineChart, ManySeriesGetALegendAbove) {
  LineChart chart;
  for (int i = 0; i < 12; ++i) {
    chart.series.push_back({"series " + std::to_string(i), {0, 1}, {double(i), double(i)}, {}});
  }
  const std::string svg = chart.svg();
  EXPECT_EQ(markup_fault(svg), "");
  EXPECT_EQ(count_of(svg, "leader"), 0);
  EXPECT_EQ(count_of(svg, ">series 1</text>"), 1);
  EXPECT_THAT(svg, HasSubstr("c0 dashed"));
  // Also where each has the colour of its run.
  for (int i = 0; i < 12; ++i) chart.series[static_cast<std::size_t>(i)].colour = i;
  EXPECT_EQ(chart.svg(), svg);
}

TEST(LineChart, RefusesVectorsOfDifferentLengths) {
  LineChart chart;
  chart.series = {{"a", {0, 1}, {1}, {}}};
  EXPECT_THROW(chart.svg(), std::logic_error);
}

BarChart modes() {
  BarChart chart;
  chart.title = "accuracy by mode";
  chart.label = "linear top-1 (%)";
  chart.bars = {
      {"Conventional", 19.4}, {"FIFO", 25.0, 1.2}, {"MinRed", 35.4, kNan, {31, 35.4, 39.8}}};
  chart.references = {{"untrained", 14}};
  return chart;
}

TEST(BarChart, WritesEveryValueBesideItsBar) {
  const std::string svg = modes().svg();
  EXPECT_EQ(markup_fault(svg), "");
  EXPECT_THAT(svg, Not(HasSubstr("http")));
  EXPECT_EQ(count_of(svg, "<rect"), 3);
  EXPECT_THAT(svg, HasSubstr(">19.4</text>"));
  EXPECT_THAT(svg, HasSubstr("25.0 \u00b1 1.2"));
  EXPECT_THAT(svg, HasSubstr("untrained 14.0"));
  EXPECT_EQ(count_of(svg, "class=\"run\""), 3);
}

TEST(BarChart, LengthsAreInProportionToValues) {
  BarChart chart;
  chart.bars = {{"a", 10}, {"b", 40}};
  const std::string svg = chart.svg();
  std::vector<double> widths;
  for (const auto& bar : texts_between(svg, "<rect", "/>")) {
    widths.push_back(std::stod(texts_between(bar, " width=\"", "\"").front()));
  }
  ASSERT_EQ(widths.size(), 2u);
  EXPECT_NEAR(widths[1] / widths[0], 4, 0.01);
}

TEST(BarChart, LongNamesKeepTheirBeginning) {
  BarChart chart;
  chart.width = 300;
  const std::string name =
      "a rather long label of a folder, with \u00e9\u00e9\u00e9\u00e9 and more";
  chart.bars = {{name, 10}, {"b", 40}};
  const std::string svg = chart.svg();
  EXPECT_THAT(svg, HasSubstr(">a rather long la"));
  EXPECT_THAT(svg, HasSubstr("\u2026</text>"));
  EXPECT_THAT(svg, HasSubstr("<title>" + name));
  for (double width = 0; width < 400; width += 3) {
    const std::string within = text_within(name, kFont, width);
    EXPECT_EQ(printable(within), within) << "no part of a character";
    EXPECT_LE(text_width(within, kFont), std::max(width, 20.0)) << "an ellipsis at least";
    EXPECT_TRUE(within == name || within.ends_with("\u2026")) << within;
  }
  EXPECT_EQ(text_within(name, kFont, 400), name);
}

TEST(BarChart, EscapesNamesAndBearsMissingValues) {
  auto chart = modes();
  chart.bars[0].name = "<b>&";
  chart.bars[1].value = kNan;
  chart.bars[2].value = -3;
  const std::string svg = chart.svg();
  EXPECT_EQ(markup_fault(svg), "");
  EXPECT_THAT(svg, HasSubstr("no value"));
  EXPECT_THAT(svg, Not(HasSubstr("nan")));
  EXPECT_THAT(BarChart().svg(), HasSubstr("no data"));
}

TEST(LineChart, ALineWithoutANameIsInNoLegend) {
  LineChart chart = two_lines();
  chart.series.push_back({.name = "", .x = {0, 1}, .y = {1, 2}, .dashed = true});
  chart.series[0].name = std::string(60, 'w');  // too long for the ends of the lines
  const std::string svg = chart.svg();
  EXPECT_EQ(markup_fault(svg), "");
  const auto legend = svg.substr(svg.find("class=\"legend\""));
  EXPECT_THAT(legend.substr(0, legend.find("</svg>")), Not(HasSubstr("dashed")));
}

TEST(StandaloneSvg, IsAFileWithItsOwnStyle) {
  const std::string file = standalone_svg(two_lines().svg());
  EXPECT_EQ(markup_fault(file), "");
  EXPECT_THAT(file, HasSubstr("width=\"760\" height=\"360\""));
  EXPECT_THAT(file, HasSubstr("prefers-color-scheme: dark"));
  EXPECT_THROW(standalone_svg("<p/>"), std::logic_error);
}

}  // namespace
}  // namespace riffle

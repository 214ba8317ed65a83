#include "riffle/report/axis.h"

#include <cmath>
#include <limits>
#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace riffle {
namespace {

using testing::ElementsAre;
using testing::SizeIs;

std::vector<std::string> tick_texts(const Axis& axis) {
  std::vector<std::string> texts;
  for (const double tick : axis.ticks) texts.push_back(axis.tick_text(tick));
  return texts;
}

TEST(Axis, RoundedTicksCoverTheData) {
  for (const auto& [low, high] : std::vector<std::pair<double, double>>{
           {0, 100}, {3.2, 47.9}, {-0.93, -0.41}, {-5, 7}, {1e-6, 3e-6}, {0, 1.5e6}, {7, 7.001}}) {
    for (const int wanted : {3, 5, 8}) {
      const Axis axis = make_axis(low, high, Scale::linear, Ends::rounded, wanted);
      ASSERT_GE(axis.ticks.size(), 2u);
      EXPECT_LE(axis.ticks.front(), low);
      EXPECT_GE(axis.ticks.back(), high);
      EXPECT_LE(axis.ticks.size(), static_cast<std::size_t>(wanted) + 3);
      EXPECT_EQ(axis.fraction(axis.ticks.front()), 0);
      EXPECT_DOUBLE_EQ(axis.fraction(axis.ticks.back()), 1);
    }
  }
}

TEST(Axis, TightTicksLieInsideTheData) {
  const Axis axis = make_axis(0, 1430, Scale::linear, Ends::tight, 7);
  EXPECT_EQ(axis.low, 0);
  EXPECT_EQ(axis.high, 1430);
  EXPECT_THAT(tick_texts(axis), ElementsAre("0", "250", "500", "750", "1,000", "1,250"));
}

TEST(Axis, LogTicksCoverTheDataOverManyAndFewDecades) {
  for (const auto& [low, high] : std::vector<std::pair<double, double>>{
           {1, 1e6}, {0.003, 0.4}, {20, 70}, {1e-12, 1e9}, {5, 5}, {0, 10}}) {
    const Axis axis = make_axis(low, high, Scale::log, Ends::rounded, 5);
    ASSERT_GE(axis.ticks.size(), 2u) << low << ' ' << high;
    EXPECT_LE(axis.ticks.size(), 12u) << low << ' ' << high;
    EXPECT_GE(axis.ticks.back(), high * (1 - 1e-9));
    if (low > 0) {
      EXPECT_LE(axis.ticks.front(), low * (1 + 1e-9));
    }
    EXPECT_GT(axis.low, 0);
  }
}

TEST(Axis, TickTextsTellNeighboursApart) {
  for (const auto& [low, high] : std::vector<std::pair<double, double>>{
           {0, 0.003}, {0.97, 1.0}, {0, 12345}, {0, 3e7}, {1e6, 1.002e6}, {-40, 40}, {0, 2e-7}}) {
    const auto texts = tick_texts(make_axis(low, high, Scale::linear, Ends::rounded, 5));
    EXPECT_THAT(std::set<std::string>(texts.begin(), texts.end()), SizeIs(texts.size()))
        << low << ' ' << high << ' ' << testing::PrintToString(texts);
  }
  EXPECT_THAT(tick_texts(make_axis(0, 40000, Scale::linear, Ends::rounded, 4)),
              ElementsAre("0", "10k", "20k", "30k", "40k"));
  EXPECT_THAT(tick_texts(make_axis(-0.1, 0.1, Scale::linear, Ends::rounded, 4)),
              ElementsAre("\u22120.10", "\u22120.05", "0.00", "0.05", "0.10"));
}

TEST(Axis, OneValueStillHasARange) {
  for (const double value : {0.0, 5.0, -3.0}) {
    const Axis axis = make_axis(value, value, Scale::linear, Ends::tight, 5);
    EXPECT_LT(axis.low, value);
    EXPECT_GT(axis.high, value);
    EXPECT_FALSE(axis.ticks.empty());
  }
}

TEST(Axis, ValuesThatDifferByRoundingAloneAreOneValue) {
  for (const double value : {0.03, 5e9, -7.5}) {
    const double next = std::nextafter(value, 1e12);
    for (const Ends ends : {Ends::rounded, Ends::tight}) {
      const Axis axis = make_axis(value, next, Scale::linear, ends, 5);
      EXPECT_LT(axis.low, value);
      EXPECT_GT(axis.high, next);
      EXPECT_LE(axis.ticks.size(), 8u);
    }
  }
}

TEST(ValueText, KeepsFourDigits) {
  EXPECT_EQ(value_text(43.2176), "43.22");
  EXPECT_EQ(value_text(1234567), "1,234,567");
  EXPECT_EQ(value_text(-0.5), "\u22120.5");
  EXPECT_EQ(value_text(0), "0");
  EXPECT_EQ(value_text(0.00002), "2e-5");
  EXPECT_EQ(value_text(std::numeric_limits<double>::quiet_NaN()), "none");
}

}  // namespace
}  // namespace riffle

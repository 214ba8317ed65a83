// Named amounts as horizontal bars from zero, each with its value, as an SVG element to set into a
// page.
//
// A spread is drawn as a whisker and written after the value; single runs are drawn as dots on the
// bar. A value that is not finite has no bar and reads "no value".
#pragma once

#include <limits>
#include <string>
#include <vector>

#include "riffle/report/axis.h"
#include "riffle/report/markup.h"

namespace riffle {

struct Bar {
  std::string name = {};
  double value = 0;
  // NaN: unknown.
  double spread = std::numeric_limits<double>::quiet_NaN();
  // The values that `value` is the mean of.
  std::vector<double> runs = {};
  Colour colour = kAutoColour;
};

struct BarChart {
  // What the chart shows, for screen readers.
  std::string title = {};
  // Of the axis, with its unit: "linear top-1 (%)".
  std::string label = {};
  int decimals = 1;
  std::vector<Bar> bars = {};
  // Such as the untrained network, or chance.
  std::vector<Reference> references = {};
  // In px, before the page scales it.
  int width = 760;

  std::string svg() const;
};

}  // namespace riffle

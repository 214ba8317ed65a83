// Named amounts as horizontal bars from zero, each with its value, as an SVG element to set into a
// page.
//
// A spread is drawn as a whisker and written behind the value; single runs are drawn as dots on the
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
  double spread = std::numeric_limits<double>::quiet_NaN();  // NaN: unknown
  std::vector<double> runs = {};                             // the values behind a mean
  Colour colour = kAutoColour;
};

struct BarChart {
  std::string title = {};  // for screen readers: what the chart shows
  std::string label = {};  // of the axis, with its unit: "linear top-1 (%)"
  int decimals = 1;
  std::vector<Bar> bars = {};
  std::vector<Reference> references = {};  // such as the untrained network or chance
  int width = 760;                         // px before the page scales it

  std::string svg() const;
};

}  // namespace riffle

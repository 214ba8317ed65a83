// From the values of a series to the points of a line: gaps, thinning, and names that must not
// overlap.
#pragma once

#include <cstddef>
#include <vector>

#include "riffle/report/axis.h"
#include "riffle/report/line_chart.h"

namespace riffle {

struct CurvePlace {
  double x = 0;
  double y = 0;
  double spread = 0;
  // No value here: the line breaks.
  bool gap = false;
};

// Returns whether an axis of that scale can show the value.
bool drawable(double value, Scale scale);

// Returns the points of a series whose x can be drawn.
std::vector<CurvePlace> curve_points(const LineSeries& series, Scale x_scale, Scale y_scale);

// Returns at most two points for each column and the last one: the least and the greatest, in their
// order.
std::vector<CurvePlace> thin(const std::vector<CurvePlace>& points, std::size_t columns);

// Returns ascending places moved as little as keeps them `gap` apart and above `limit`: those that
// touch form a block around the mean of what its members wanted.
std::vector<double> spread_apart(const std::vector<double>& wanted, double gap, double limit);

}  // namespace riffle

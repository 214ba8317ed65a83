// Curves over one axis as an SVG element to set into a page: several named series, ticks, units,
// names at the ends of the lines, values on hover.
//
// The drawing takes its colours from the page's style sheet (light and dark); standalone_svg()
// makes it a file of its own. Up to eight names stand beside the ends of their lines, more become a
// legend above the chart; a line without a name is in neither. Values that are not finite, and
// those that are not positive on a log axis, leave a gap. A series longer than the drawing has
// columns is thinned to the least and greatest value of each column, so that a page stays small and
// no peak is lost.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "riffle/report/axis.h"
#include "riffle/report/markup.h"

namespace riffle {

struct LineSeries {
  std::string name = {};
  // Ascending.
  std::vector<double> x = {};
  // One for each x.
  std::vector<double> y = {};
  // Empty, or one for each x: a band of that width above and below the line.
  std::vector<double> spread = {};
  Colour colour = kAutoColour;
  bool dashed = false;
};

// Returns the mean over `window` values around each, for a noisy curve. Values that are not finite
// stay so and do not count.
std::vector<double> moving_mean(const std::vector<double>& values, std::size_t window);

struct LineChart {
  // What the chart shows, for screen readers.
  std::string title = {};
  // With their units: "linear top-1 (%)".
  std::string x_label = {};
  std::string y_label = {};
  Scale x_scale = Scale::linear;
  Scale y_scale = Scale::linear;
  // Otherwise from the data; zero is shown if it is near.
  std::optional<double> y_low;
  std::optional<double> y_high;
  std::vector<LineSeries> series = {};
  std::vector<Reference> references = {};
  // In px, before the page scales it.
  int width = 760;
  int height = 360;

  // Throws std::logic_error if the vectors of a series differ in length.
  std::string svg() const;
};

}  // namespace riffle

// A chart's axis: the range it shows, its ticks and their texts.
#pragma once

#include <string>
#include <vector>

namespace riffle {

enum class Scale { linear, log };

struct Axis {
  Scale scale = Scale::linear;
  double low = 0;
  double high = 1;
  // Ascending, all within [low, high].
  std::vector<double> ticks = {};

  // Returns the place of a value between low (0) and high (1).
  double fraction(double value) const;
  // Returns a tick's text, with as many decimals as tell neighbouring ticks apart: "0.05", "1,500",
  // "20k".
  std::string tick_text(double tick) const;
};

enum class Ends {
  // The range grows to the next tick on both sides.
  rounded,
  // The range is the data's; ticks are inside only.
  tight
};

// Returns an axis for data in [low, high] with about `wanted` ticks. Equal or reversed bounds, and
// bounds that are not positive on a log scale, get a range that can still be drawn.
Axis make_axis(double low, double high, Scale scale, Ends ends, int wanted);

// A level to compare with, drawn as a dashed grey line across the chart.
struct Reference {
  std::string name = {};
  double value = 0;
};

// Returns the text of a value for a tooltip or a label: up to four significant digits, thousands
// apart.
std::string value_text(double value);

}  // namespace riffle

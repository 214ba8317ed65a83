// A chart's axis: which range it shows, where its ticks stand and what they say.
#pragma once

#include <string>
#include <vector>

namespace riffle {

enum class Scale { linear, log };

struct Axis {
  Scale scale = Scale::linear;
  double low = 0;
  double high = 1;
  std::vector<double> ticks = {};  // ascending, all within [low, high]

  // Where a value lies between low (0) and high (1).
  double fraction(double value) const;
  // A tick's text, with as many decimals as tell neighbouring ticks apart: "0.05", "1,500", "20k".
  std::string tick_text(double tick) const;
};

enum class Ends {
  rounded,  // the range grows to the next tick on both sides
  tight     // the range is the data's; ticks only inside
};

// An axis for data in [low, high] with about `wanted` ticks. Equal or reversed bounds, and bounds
// that are not positive on a log scale, get a range that still can be drawn.
Axis make_axis(double low, double high, Scale scale, Ends ends, int wanted);

// A level to compare with, drawn as a dashed grey line across the chart.
struct Reference {
  std::string name = {};
  double value = 0;
};

// A value to read exactly in a tooltip or a label: up to four significant digits, thousands apart.
std::string value_text(double value);

}  // namespace riffle

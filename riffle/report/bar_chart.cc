#include "riffle/report/bar_chart.h"

#include <algorithm>
#include <cmath>

#include "riffle/base/text.h"

namespace riffle {
namespace {

constexpr double kRow = 34;
constexpr double kThickness = 20;
constexpr double kNameFont = kFont + 1;

std::string px(double value) { return fixed(value, 1); }

std::string written_value(const Bar& bar, int decimals) {
  if (!std::isfinite(bar.value)) return "no value";
  const std::string value = fixed(bar.value, decimals);
  return std::isfinite(bar.spread) ? cat(value, " \u00b1 ", fixed(bar.spread, decimals)) : value;
}

Axis value_axis(const BarChart& chart) {
  double low = 0;
  double high = 0;
  const auto cover = [&](double value) {
    if (!std::isfinite(value)) return;
    low = std::min(low, value);
    high = std::max(high, value);
  };
  for (const auto& bar : chart.bars) {
    cover(bar.value);
    if (std::isfinite(bar.spread)) {
      cover(bar.value - bar.spread);
      cover(bar.value + bar.spread);
    }
    for (const double run : bar.runs) cover(run);
  }
  for (const auto& reference : chart.references) cover(reference.value);
  if (low == high) high = 1;
  return make_axis(low, high, Scale::linear, Ends::rounded, 6);
}

// How far right the bar, its whisker and its dots reach: the value is written after that.
double reach(const Bar& bar) {
  double end = std::max(0.0, bar.value);
  if (std::isfinite(bar.spread)) end = std::max(end, bar.value + bar.spread);
  for (const double run : bar.runs) {
    if (std::isfinite(run)) end = std::max(end, run);
  }
  return end;
}

}  // namespace

std::string BarChart::svg() const {
  const Axis axis = value_axis(*this);
  double name_width = 0;
  double value_width = 0;
  for (const auto& bar : bars) {
    name_width = std::max(name_width, text_width(bar.name, kNameFont));
    value_width = std::max(value_width, text_width(written_value(bar, decimals), kFont));
  }
  name_width = std::min(name_width, width * 0.4);
  const double left = name_width + 14;
  const double right = width - value_width - 18;
  const double top = references.empty() ? 8 : 8 + 16 * static_cast<double>(references.size());
  const double bottom = top + kRow * static_cast<double>(std::max<std::size_t>(1, bars.size()));
  const double height = bottom + (label.empty() ? 26 : 44);
  const auto x_of = [&](double value) { return left + axis.fraction(value) * (right - left); };

  std::string out =
      cat("<svg class=\"chart bars\" viewBox=\"0 0 ", width, ' ', px(height),
          "\" role=\"img\" aria-label=\"", escape(title), "\">\n<g class=\"grid\">\n");
  for (const double tick : axis.ticks) {
    out += cat("<line", tick == 0 ? " class=\"base\"" : "", " x1=\"", px(x_of(tick)), "\" x2=\"",
               px(x_of(tick)), "\" y1=\"", px(top), "\" y2=\"", px(bottom), "\"/>\n");
  }
  out += "</g>\n<g class=\"ticks\">\n";
  for (const double tick : axis.ticks) {
    out += cat("<text class=\"x\" x=\"", px(x_of(tick)), "\" y=\"", px(bottom + 16),
               "\" text-anchor=\"middle\">", axis.tick_text(tick), "</text>\n");
  }
  out += "</g>\n";
  if (!label.empty()) {
    out += cat("<text class=\"axis\" x=\"", px((left + right) / 2), "\" y=\"", px(height - 6),
               "\" text-anchor=\"middle\">", escape(label), "</text>\n");
  }
  if (bars.empty()) {
    out += cat("<text class=\"empty\" x=\"", px((left + right) / 2), "\" y=\"",
               px((top + bottom) / 2 + 4), "\" text-anchor=\"middle\">no data</text>\n");
  }

  for (std::size_t i = 0; i < bars.size(); ++i) {
    const Bar& bar = bars[i];
    const double middle = top + kRow * (static_cast<double>(i) + 0.5);
    const std::string written = written_value(bar, decimals);
    out += cat("<g class=\"bar ", colour_class(bar.colour, i), "\"><title>", escape(bar.name), ": ",
               written, "</title>\n<text class=\"name\" x=\"", px(left - 10), "\" y=\"",
               px(middle + 4), "\" text-anchor=\"end\">",
               escape(text_within(bar.name, kNameFont, name_width)), "</text>\n");
    double written_at = x_of(0);
    if (std::isfinite(bar.value)) {
      const double from = std::min(x_of(0), x_of(bar.value));
      const double to = std::max(x_of(0), x_of(bar.value));
      out += cat("<rect x=\"", px(from), "\" y=\"", px(middle - kThickness / 2), "\" width=\"",
                 px(to - from), "\" height=\"", px(kThickness), "\" rx=\"2\"/>\n");
      if (std::isfinite(bar.spread)) {
        const double low = x_of(bar.value - bar.spread);
        const double high = x_of(bar.value + bar.spread);
        out +=
            cat("<path class=\"whisker\" d=\"M", px(low), ' ', px(middle), "H", px(high), "M",
                px(low), ' ', px(middle - 5), "v10M", px(high), ' ', px(middle - 5), "v10\"/>\n");
      }
      for (const double run : bar.runs) {
        if (!std::isfinite(run)) continue;
        out += cat("<circle class=\"run\" cx=\"", px(x_of(run)), "\" cy=\"", px(middle),
                   "\" r=\"3\"/>\n");
      }
      written_at = x_of(reach(bar));
    }
    out += cat("<text class=\"value\" x=\"", px(written_at + 8), "\" y=\"", px(middle + 4), "\">",
               written, "</text></g>\n");
  }

  for (std::size_t i = 0; i < references.size(); ++i) {
    const auto& reference = references[i];
    if (!std::isfinite(reference.value)) continue;
    const double x = x_of(reference.value);
    const double y = 12 + 16 * static_cast<double>(i);
    const std::string words = cat(reference.name, ' ', fixed(reference.value, decimals));
    // Near the right border the words go to the left of their line.
    const bool leftwards = x + 6 + text_width(words, kFont) > width;
    out += cat("<g class=\"reference\"><line x1=\"", px(x), "\" x2=\"", px(x), "\" y1=\"",
               px(y - 8), "\" y2=\"", px(bottom), "\"/><text x=\"", px(leftwards ? x - 6 : x + 6),
               "\" y=\"", px(y), "\" text-anchor=\"", leftwards ? "end" : "start", "\">",
               escape(words), "</text></g>\n");
  }
  return out + "</svg>\n";
}

}  // namespace riffle

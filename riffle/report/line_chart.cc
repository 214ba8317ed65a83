#include "riffle/report/line_chart.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <stdexcept>

#include "riffle/base/text.h"
#include "riffle/report/curve.h"

namespace riffle {
namespace {

constexpr double kLabelGap = 15;  // least distance between the names of two lines
constexpr std::ptrdiff_t kMaxEndLabels = 8;
constexpr std::size_t kMaxMarkers = 30;  // more points than this: no dots on the line
constexpr std::size_t kMaxHovers = 80;   // places of one line that answer the mouse

struct Curve {
  std::string name;
  std::string css;
  std::vector<CurvePlace> points;
  bool dashed = false;
  bool has_spread = false;
  bool hovers = true;

  const CurvePlace* last() const {
    for (auto point = points.rbegin(); point != points.rend(); ++point) {
      if (!point->gap) return &*point;
    }
    return nullptr;
  }
};

struct Range {
  double low = std::numeric_limits<double>::infinity();
  double high = -std::numeric_limits<double>::infinity();

  void cover(double value) {
    low = std::min(low, value);
    high = std::max(high, value);
  }
  bool empty() const { return low > high; }
};

class Drawing {
 public:
  explicit Drawing(const LineChart& chart) : chart_(chart) {
    collect_curves();
    make_axes();
    set_margins();
  }

  std::string svg() {
    out_ = cat("<svg class=\"chart\" viewBox=\"0 0 ", chart_.width, ' ', chart_.height,
               "\" role=\"img\" aria-label=\"", escape(chart_.title), "\">\n");
    draw_axes();
    for (const auto& curve : curves_) draw_band(curve);
    for (const auto& curve : curves_) draw_line(curve);
    if (any_value_) {
      labels_at_ends_ ? draw_end_labels() : draw_legend();
    } else {
      text(cat("x=\"", px((left_ + right_) / 2), "\" y=\"", px((top_ + bottom_) / 2),
               "\" text-anchor=\"middle\" class=\"empty\""),
           "no data");
    }
    return out_ + "</svg>\n";
  }

 private:
  static std::string px(double value) { return fixed(value, 1); }
  double x_of(double value) const { return left_ + x_.fraction(value) * (right_ - left_); }
  double y_of(double value) const {
    const double fraction = std::clamp(y_.fraction(value), -0.02, 1.02);
    return bottom_ - fraction * (bottom_ - top_);
  }
  void text(const std::string& attributes, const std::string& content) {
    out_ += cat("<text ", attributes, ">", escape(content), "</text>\n");
  }

  void collect_curves() {
    Range x;
    for (std::size_t i = 0; i < chart_.series.size(); ++i) {
      const auto& series = chart_.series[i];
      if (series.y.size() != series.x.size() ||
          (!series.spread.empty() && series.spread.size() != series.x.size())) {
        throw std::logic_error(cat("series '", series.name, "' has vectors of different lengths"));
      }
      Curve curve{series.name, colour_class(series.colour, i),
                  thin(curve_points(series, chart_.x_scale, chart_.y_scale),
                       static_cast<std::size_t>(chart_.width)),
                  series.dashed, !series.spread.empty()};
      const auto colour = series.colour == kAutoColour ? static_cast<Colour>(i) : series.colour;
      if (colour >= kPaletteSize) curve.dashed = true;
      for (const auto& point : curve.points) x.cover(point.x);
      curves_.push_back(std::move(curve));
    }
    x_range_ = x;
    for (const auto& reference : chart_.references) {
      if (!drawable(reference.value, chart_.y_scale) || x.empty()) continue;
      Curve line{reference.name, colour_class(kNeutralColour, 0), {}, true};
      line.hovers = false;
      line.points = {{x.low, reference.value}, {x.high, reference.value}};
      curves_.push_back(std::move(line));
    }
    for (const auto& curve : curves_) any_value_ = any_value_ || curve.last() != nullptr;
  }

  void make_axes() {
    Range y;
    for (const auto& curve : curves_) {
      for (const auto& point : curve.points) {
        if (point.gap) continue;
        for (const double value : {point.y - point.spread, point.y + point.spread}) {
          if (drawable(value, chart_.y_scale)) y.cover(value);
        }
      }
    }
    if (x_range_.empty()) x_range_ = {0, 1};
    if (y.empty()) y = {0, 1};
    const bool zero_is_near = y.low > 0 && y.low < 0.6 * y.high;
    if (chart_.y_scale == Scale::linear && zero_is_near) y.low = 0;
    if (chart_.y_low) y.low = *chart_.y_low;
    if (chart_.y_high) y.high = *chart_.y_high;
    x_ = make_axis(x_range_.low, x_range_.high, chart_.x_scale, Ends::tight, 7);
    y_ = make_axis(y.low, y.high, chart_.y_scale, Ends::rounded, 5);
  }

  void set_margins() {
    double tick_width = 0;
    for (const double tick : y_.ticks) {
      tick_width = std::max(tick_width, text_width(y_.tick_text(tick), kFont));
    }
    left_ = tick_width + 16;
    top_ = 34;
    bottom_ = chart_.height - (chart_.x_label.empty() ? 28 : 46);
    // The last tick's text stands half outside.
    double last_width = 0;
    if (!x_.ticks.empty()) last_width = text_width(x_.tick_text(x_.ticks.back()), kFont);
    right_ = chart_.width - std::max(16.0, last_width / 2 + 6);
    labels_at_ends_ = std::ranges::count_if(curves_, [](const Curve& curve) {
                        return !curve.name.empty();
                      }) <= kMaxEndLabels;
    if (labels_at_ends_) {
      double name_width = 0;
      for (const auto& curve : curves_) {
        name_width = std::max(name_width, text_width(curve.name, kFont));
      }
      // A name longer than a third of the drawing would leave no room for the lines.
      if (name_width > chart_.width / 3.0) {
        labels_at_ends_ = false;
      } else if (name_width > 0) {
        right_ = chart_.width - name_width - 34;
      }
    }
    if (!labels_at_ends_) top_ += 20 * static_cast<double>(legend_rows().size());
  }

  std::vector<std::vector<const Curve*>> legend_rows() const {
    std::vector<std::vector<const Curve*>> rows(1);
    double used = 0;
    for (const auto& curve : curves_) {
      if (curve.name.empty()) continue;
      const double needed = legend_width(curve);
      if (used + needed > chart_.width && !rows.back().empty()) {
        rows.emplace_back();
        used = 0;
      }
      rows.back().push_back(&curve);
      used += needed;
    }
    return rows;
  }
  static double legend_width(const Curve& curve) { return text_width(curve.name, kFont) + 44; }

  void draw_axes() {
    out_ += "<g class=\"grid\">\n";
    for (const double tick : y_.ticks) {
      const bool base = tick == y_.ticks.front();
      out_ += cat("<line", base ? " class=\"base\"" : "", " x1=\"", px(left_), "\" x2=\"",
                  px(right_), "\" y1=\"", px(y_of(tick)), "\" y2=\"", px(y_of(tick)), "\"/>\n");
    }
    for (const double tick : x_.ticks) {
      out_ += cat("<line class=\"tick\" x1=\"", px(x_of(tick)), "\" x2=\"", px(x_of(tick)),
                  "\" y1=\"", px(bottom_), "\" y2=\"", px(bottom_ + 5), "\"/>\n");
    }
    out_ += "</g>\n<g class=\"ticks\">\n";
    for (const double tick : y_.ticks) {
      text(cat("class=\"y\" x=\"", px(left_ - 8), "\" y=\"", px(y_of(tick) + 4),
               "\" text-anchor=\"end\""),
           y_.tick_text(tick));
    }
    // Ticks close together on a log axis: only those whose texts do not touch.
    double free_from = 0;
    for (const double tick : x_.ticks) {
      const std::string tick_text = x_.tick_text(tick);
      const double half = text_width(tick_text, kFont) / 2;
      if (x_of(tick) - half < free_from) continue;
      free_from = x_of(tick) + half + 6;
      text(cat("class=\"x\" x=\"", px(x_of(tick)), "\" y=\"", px(bottom_ + 19),
               "\" text-anchor=\"middle\""),
           tick_text);
    }
    out_ += "</g>\n";
    if (!chart_.y_label.empty()) {
      text(cat("class=\"axis\" x=\"2\" y=\"", px(top_ - 18), '"'), chart_.y_label);
    }
    if (!chart_.x_label.empty()) {
      text(cat("class=\"axis\" x=\"", px((left_ + right_) / 2), "\" y=\"", chart_.height - 6,
               "\" text-anchor=\"middle\""),
           chart_.x_label);
    }
  }

  // Calls draw(begin, end) for every run of points without a gap.
  template <typename Draw>
  static void for_each_run(const Curve& curve, const Draw& draw) {
    std::size_t begin = 0;
    for (std::size_t i = 0; i <= curve.points.size(); ++i) {
      if (i < curve.points.size() && !curve.points[i].gap) continue;
      if (i > begin) draw(begin, i);
      begin = i + 1;
    }
  }

  void draw_band(const Curve& curve) {
    if (!curve.has_spread) return;
    for_each_run(curve, [&](std::size_t begin, std::size_t end) {
      if (end - begin < 2) return;
      std::string corners;
      const auto corner = [&](const CurvePlace& point, double sign) {
        double y = point.y + sign * point.spread;
        if (!drawable(y, chart_.y_scale)) y = y_.low;
        corners += cat(corners.empty() ? "" : " ", px(x_of(point.x)), ',', px(y_of(y)));
      };
      for (std::size_t i = begin; i < end; ++i) corner(curve.points[i], 1);
      for (std::size_t i = end; i > begin; --i) corner(curve.points[i - 1], -1);
      out_ += cat("<polygon class=\"band ", curve.css, "\" points=\"", corners, "\"/>\n");
    });
  }

  void draw_line(const Curve& curve) {
    out_ += cat("<g class=\"series ", curve.css, curve.dashed ? " dashed" : "",
                curve.points.size() > kMaxHovers ? " dense" : "", "\">\n");
    const bool markers = curve.hovers && curve.points.size() <= kMaxMarkers;
    for_each_run(curve, [&](std::size_t begin, std::size_t end) {
      if (end - begin == 1) {
        // A lone value between gaps would have no line: it gets a dot.
        if (!markers) out_ += dot(curve.points[begin], "dot");
        return;
      }
      std::string path;
      for (std::size_t i = begin; i < end; ++i) {
        path += cat(i == begin ? "M" : "L", px(x_of(curve.points[i].x)), ' ',
                    px(y_of(curve.points[i].y)));
      }
      out_ += cat("<path d=\"", path, "\"/>\n");
    });
    if (curve.hovers) draw_hovers(curve, markers);
    out_ += "</g>\n";
  }

  std::string dot(const CurvePlace& point, const char* css) const {
    return cat("<circle class=\"", css, "\" cx=\"", px(x_of(point.x)), "\" cy=\"",
               px(y_of(point.y)), "\" r=\"3\"/>\n");
  }

  void draw_hovers(const Curve& curve, bool markers) {
    const std::size_t count = std::min(curve.points.size(), kMaxHovers);
    for (std::size_t i = 0; i < count; ++i) {
      const std::size_t place = count < 2 ? 0 : i * (curve.points.size() - 1) / (count - 1);
      const auto& point = curve.points[place];
      if (point.gap) continue;
      const std::string spread = curve.has_spread ? cat(" \u00b1 ", value_text(point.spread)) : "";
      out_ +=
          cat("<g class=\"hover\"><circle class=\"target\" cx=\"", px(x_of(point.x)), "\" cy=\"",
              px(y_of(point.y)), "\" r=\"9\"/>", dot(point, markers ? "dot" : "hidden dot"),
              "<title>", curve.name.empty() ? "" : cat(escape(curve.name), ": "),
              value_text(point.y), spread, " at ", value_text(point.x),
              chart_.x_label.empty() ? "" : " ", escape(chart_.x_label), "</title></g>\n");
    }
  }

  void draw_end_labels() {
    struct Label {
      const Curve* curve;
      double y_line;
      double y = 0;
    };
    std::vector<Label> labels;
    for (const auto& curve : curves_) {
      if (const CurvePlace* last = curve.last(); last != nullptr && !curve.name.empty()) {
        labels.push_back({&curve, y_of(last->y)});
      }
    }
    std::stable_sort(labels.begin(), labels.end(),
                     [](const Label& a, const Label& b) { return a.y_line < b.y_line; });
    std::vector<double> wanted;
    for (const auto& label : labels) wanted.push_back(label.y_line);
    const auto places = spread_apart(wanted, kLabelGap, bottom_);
    for (std::size_t i = 0; i < labels.size(); ++i) labels[i].y = places[i];
    out_ += "<g class=\"legend\">\n";
    for (const auto& label : labels) {
      // Not from the end of a line that ends early: it would look as if the line continued.
      out_ += cat("<path class=\"leader ", label.curve->css, "\" d=\"M", px(right_ + 4), ' ',
                  px(label.y_line), 'L', px(right_ + 14), ' ', px(label.y), "h6\"/>\n");
      text(cat("x=\"", px(right_ + 24), "\" y=\"", px(label.y + 4), '"'), label.curve->name);
    }
    out_ += "</g>\n";
  }

  void draw_legend() {
    out_ += "<g class=\"legend\">\n";
    double y = 14;
    for (const auto& row : legend_rows()) {
      double x = 2;
      for (const Curve* curve : row) {
        out_ += cat("<g class=\"series ", curve->css, curve->dashed ? " dashed" : "",
                    "\"><path d=\"M", px(x), ' ', px(y - 4), "h18\"/></g>\n");
        text(cat("x=\"", px(x + 24), "\" y=\"", px(y), '"'), curve->name);
        x += legend_width(*curve);
      }
      y += 20;
    }
    out_ += "</g>\n";
  }

  const LineChart& chart_;
  std::vector<Curve> curves_;
  Range x_range_;
  Axis x_;
  Axis y_;
  bool any_value_ = false;
  bool labels_at_ends_ = true;
  double left_ = 0, right_ = 0, top_ = 0, bottom_ = 0;
  std::string out_;
};

}  // namespace

std::string LineChart::svg() const { return Drawing(*this).svg(); }

}  // namespace riffle

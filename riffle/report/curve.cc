#include "riffle/report/curve.h"

#include <algorithm>
#include <cmath>

namespace riffle {

bool drawable(double value, Scale scale) {
  return std::isfinite(value) && (scale == Scale::linear || value > 0);
}

std::vector<CurvePlace> curve_points(const LineSeries& series, Scale x_scale, Scale y_scale) {
  std::vector<CurvePlace> points;
  for (std::size_t i = 0; i < series.x.size(); ++i) {
    if (!drawable(series.x[i], x_scale)) continue;
    CurvePlace point{series.x[i], series.y[i], 0, !drawable(series.y[i], y_scale)};
    if (!series.spread.empty() && std::isfinite(series.spread[i])) {
      point.spread = std::abs(series.spread[i]);
    }
    points.push_back(point);
  }
  return points;
}

std::vector<CurvePlace> thin(const std::vector<CurvePlace>& points, std::size_t columns) {
  if (points.size() <= 2 * columns) return points;
  std::vector<CurvePlace> kept;
  for (std::size_t column = 0; column < columns; ++column) {
    const std::size_t begin = column * points.size() / columns;
    const std::size_t end = (column + 1) * points.size() / columns;
    std::size_t least = end;
    std::size_t greatest = end;
    for (std::size_t i = begin; i < end; ++i) {
      if (points[i].gap) continue;
      if (least == end || points[i].y < points[least].y) least = i;
      if (greatest == end || points[i].y > points[greatest].y) greatest = i;
    }
    if (least == end) {
      kept.push_back(points[begin]);
      continue;
    }
    kept.push_back(points[std::min(least, greatest)]);
    if (least != greatest) kept.push_back(points[std::max(least, greatest)]);
  }
  if (!points.back().gap) kept.push_back(points.back());
  return kept;
}

std::vector<double> spread_apart(const std::vector<double>& wanted, double gap, double limit) {
  struct Block {
    double first;  // where the block's first member stands
    std::size_t count;
  };
  std::vector<Block> blocks;
  for (const double place : wanted) {
    Block block{place, 1};
    while (!blocks.empty()) {
      const Block& above = blocks.back();
      const double above_end = above.first + gap * static_cast<double>(above.count);
      if (above_end <= block.first) break;
      const double shift = gap * static_cast<double>(above.count * block.count);
      const double count = static_cast<double>(above.count + block.count);
      block.first = (above.first * static_cast<double>(above.count) +
                     block.first * static_cast<double>(block.count) - shift) /
                    count;
      block.count += above.count;
      blocks.pop_back();
    }
    blocks.push_back(block);
  }
  std::vector<double> places;
  for (const auto& block : blocks) {
    for (std::size_t i = 0; i < block.count; ++i) {
      places.push_back(block.first + gap * static_cast<double>(i));
    }
  }
  for (auto place = places.rbegin(); place != places.rend(); ++place) {
    *place = std::min(*place, limit);
    limit = *place - gap;
  }
  return places;
}

std::vector<double> moving_mean(const std::vector<double>& values, std::size_t window) {
  std::vector<double> means = values;
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (!std::isfinite(values[i])) continue;
    const std::size_t begin = i - std::min(i, window / 2);
    const std::size_t end = std::min(values.size(), i + window / 2 + 1);
    // From the value itself, so that rounding cannot move one whose neighbours are the same.
    double beyond = 0;
    double count = 0;
    for (std::size_t j = begin; j < end; ++j) {
      if (!std::isfinite(values[j])) continue;
      beyond += values[j] - values[i];
      ++count;
    }
    means[i] += beyond / count;
  }
  return means;
}

}  // namespace riffle

#include "riffle/report/axis.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstdio>

#include "riffle/base/text.h"

namespace riffle {
namespace {

// Rounding in the multiples of a step must not lose a tick that lies on the border.
constexpr double kSlack = 1e-9;
// Bounds nearer to each other than this, relative to their size, differ by rounding alone; ticks
// between them could not be told apart.
constexpr double kFlat = 1e-12;

double nice_step(double range, int wanted) {
  const double rough = range / std::max(1, wanted);
  const double power = std::pow(10.0, std::floor(std::log10(rough)));
  for (const double multiple : {1.0, 2.0, 2.5, 5.0}) {
    if (multiple * power >= rough * (1 - kSlack)) return multiple * power;
  }
  return 10 * power;
}

Axis linear_axis(double low, double high, Ends ends, int wanted) {
  if (!(high - low > kFlat * std::max(std::abs(low), std::abs(high)))) {
    const double room = low == 0 ? 1 : std::abs(low) * 0.5;
    low -= room;
    high = low + 2 * room;
  }
  Axis axis{Scale::linear, low, high, {}};
  const double step = nice_step(high - low, wanted);
  double first = std::floor(low / step + kSlack);
  double last = std::ceil(high / step - kSlack);
  if (ends == Ends::tight) {
    first = std::ceil(low / step - kSlack);
    last = std::floor(high / step + kSlack);
  } else {
    axis.low = std::min(low, first * step);
    axis.high = std::max(high, last * step);
  }
  for (double i = first; i <= last; ++i) {
    axis.ticks.push_back(std::clamp(i * step, axis.low, axis.high) + 0.0);  // never -0
  }
  return axis;
}

Axis log_axis(double low, double high, Ends ends, int wanted) {
  if (!(high > 0)) low = high = 1;
  if (!(low > 0)) low = high / 1000;
  if (!(high > low)) {
    low /= 3;
    high = low * 9;
  }
  const double decades = std::log10(high / low);
  std::vector<double> multiples = {1};
  if (decades < wanted / 2.0) multiples = {1, 2, 5};
  if (decades < 1) multiples = {1, 1.5, 2, 3, 4, 5, 6, 8};
  const double stride = std::max(1.0, std::ceil(decades / wanted));

  std::vector<double> candidates;
  const double first_power = std::floor(std::log10(low)) - stride;
  for (double power = first_power; power <= std::ceil(std::log10(high)) + stride; power += stride) {
    for (const double multiple : multiples) candidates.push_back(multiple * std::pow(10, power));
  }
  Axis axis{Scale::log, low, high, {}};
  if (ends == Ends::rounded) {
    for (const double tick : candidates) {
      if (tick <= low * (1 + kSlack)) axis.low = std::min(low, tick);
    }
    for (auto tick = candidates.rbegin(); tick != candidates.rend(); ++tick) {
      if (*tick >= high * (1 - kSlack)) axis.high = std::max(high, *tick);
    }
  }
  for (const double tick : candidates) {
    if (tick >= axis.low * (1 - kSlack) && tick <= axis.high * (1 + kSlack)) {
      axis.ticks.push_back(std::clamp(tick, axis.low, axis.high));
    }
  }
  return axis;
}

std::string with_thousands(const std::string& digits) {
  const std::size_t begin = digits.starts_with('-') ? 1 : 0;
  const std::size_t end = std::min(digits.find('.'), digits.size());
  std::string grouped;
  for (std::size_t i = 0; i < digits.size(); ++i) {
    if (i > begin && i < end && (end - i) % 3 == 0) grouped += ',';
    grouped += digits[i];
  }
  return grouped;
}

std::string without_trailing_zeros(std::string digits) {
  if (digits.find('.') == std::string::npos) return digits;
  digits.erase(digits.find_last_not_of('0') + 1);
  if (digits.ends_with('.')) digits.pop_back();
  return digits;
}

std::string scientific(double value) {
  const double power = std::floor(std::log10(std::abs(value)) + kSlack);
  return cat(without_trailing_zeros(fixed(value / std::pow(10, power), 2)), 'e', power);
}

// "-" of the C library is a hyphen; numbers are set with the minus sign.
std::string with_minus_sign(const std::string& text) {
  return text.starts_with('-') ? "\xE2\x88\x92" + text.substr(1) : text;
}

}  // namespace

double Axis::fraction(double value) const {
  if (scale == Scale::log) return std::log(value / low) / std::log(high / low);
  return (value - low) / (high - low);
}

std::string Axis::tick_text(double tick) const {
  const double size = std::abs(tick);
  if (size != 0 && (size < 1e-4 || size >= 1e9)) return with_minus_sign(scientific(tick));
  double step = size;
  double largest = size;
  if (scale == Scale::linear) {
    step = ticks.size() > 1 ? ticks[1] - ticks[0] : size;
    largest = ticks.empty() ? size : std::max(std::abs(ticks.front()), std::abs(ticks.back()));
  }
  if (step <= 0) return "0";
  for (const auto& [unit, suffix] : {std::pair{1e6, "M"}, std::pair{1e3, "k"}}) {
    const bool exact = std::abs(step / unit * 10 - std::round(step / unit * 10)) < 1e-6;
    if (largest >= 10 * unit && exact) {
      if (tick == 0) return "0";
      return with_minus_sign(cat(without_trailing_zeros(fixed(tick / unit, 1)), suffix));
    }
  }
  int decimals = 0;
  while (decimals < 8 && std::abs(step * std::pow(10, decimals) -
                                  std::round(step * std::pow(10, decimals))) > 1e-6) {
    ++decimals;
  }
  return with_minus_sign(with_thousands(fixed(tick, decimals)));
}

Axis make_axis(double low, double high, Scale scale, Ends ends, int wanted) {
  return scale == Scale::log ? log_axis(low, high, ends, wanted)
                             : linear_axis(low, high, ends, wanted);
}

std::string value_text(double value) {
  if (!std::isfinite(value)) return "none";
  const double size = std::abs(value);
  if (size != 0 && (size < 1e-4 || size >= 1e12)) return with_minus_sign(scientific(value));
  const int whole = size < 1 ? 0 : static_cast<int>(std::floor(std::log10(size))) + 1;
  return with_minus_sign(
      with_thousands(without_trailing_zeros(fixed(value, std::max(0, 4 - whole)))));
}

}  // namespace riffle

#include "riffle/stream/pairs.h"

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <vector>

#include "riffle/stream/stream.h"

namespace riffle {
namespace {

void require_probability(double p) {
  if (!(p >= 0 && p <= 1)) throw std::logic_error("a probability is not in 0..1");
}

}  // namespace

double same_clip_share(std::span<const std::int64_t> clips) {
  if (clips.size() < 2) return 0;
  std::vector<std::int64_t> sorted;
  for (const auto clip : clips) {
    if (clip != kNoClip) sorted.push_back(clip);
  }
  std::sort(sorted.begin(), sorted.end());
  double equal_pairs = 0;
  for (std::size_t begin = 0, end = 0; begin < sorted.size(); begin = end) {
    while (end < sorted.size() && sorted[end] == sorted[begin]) ++end;
    const double run = static_cast<double>(end - begin);
    equal_pairs += run * (run - 1) / 2;
  }
  const double n = static_cast<double>(clips.size());
  return equal_pairs / (n * (n - 1) / 2);
}

double pair_correlation(std::int64_t n, double p) {
  require_probability(p);
  if (n < 2) return 0;
  const double b = static_cast<double>(n);
  const double q = 1 - p;
  if (b * q >= 1) {
    const double none = -std::expm1(b * std::log1p(-q));  // 1 - p^n
    return 2 * p / (b * (b - 1)) * (b * q - none) / (q * q);
  }
  // Near p = 1 the closed form is a difference of large, almost equal numbers. Expanded in q it is
  // 2 p / (n (n - 1)) * sum over m >= 2 of (-1)^m binomial(n, m) q^(m - 2), whose terms shrink at
  // least like 1 / m!.
  double term = 1, sum = 1;
  for (double m = 3; m <= b && std::abs(term) > 1e-18; ++m) {
    term *= -(b - m + 1) * q / m;
    sum += term;
  }
  return p * sum;
}

}  // namespace riffle

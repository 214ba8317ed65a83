#include "riffle/eval/softmax_regression.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include <torch/types.h>
#include <torch/utils.h>

namespace riffle {
namespace {

// Descent ends when the gradient is smaller by this factor than at the start; accuracies have
// settled long before.
constexpr double kTolerance = 1e-3;
constexpr std::int64_t kMostSteps = 500;
constexpr std::int64_t kHeldOut = 5;  // every fifth

struct Point {
  at::Tensor weight, bias;
};

// Rows in the new basis are (rows - mean) times `basis`; there the covariance is l / (l + penalty)
// in each direction, l being the covariance of the standardised features, and the squared length of
// standardised weights is a sum of squares with `length`.
struct Basis {
  at::Tensor mean, basis, length;
};

Basis find_basis(const at::Tensor& rows, double penalty) {
  Basis found;
  found.mean = rows.mean(0);
  const at::Tensor centred = rows - found.mean;
  const at::Tensor covariance = centred.t().mm(centred) / static_cast<double>(rows.size(0));
  const at::Tensor scale = covariance.diagonal().sqrt().clamp_min(kLeastStd).reciprocal();
  const auto [spread, directions] =
      torch::linalg_eigh(covariance * scale.unsqueeze(0) * scale.unsqueeze(1));
  found.length = (spread.clamp_min(0) + penalty).reciprocal();
  found.basis = scale.unsqueeze(1) * directions * found.length.sqrt();
  return found;
}

Point gradient(const at::Tensor& rows, const at::Tensor& classes, const Point& at,
               const at::Tensor& decay) {
  // By the scores: probabilities, less one at the true class.
  at::Tensor slope = torch::addmm(at.bias, rows, at.weight.t()).softmax(1);
  slope.scatter_add_(1, classes.unsqueeze(1),
                     torch::full({classes.size(0), 1}, -1.0, slope.options()));
  slope.div_(static_cast<double>(classes.size(0)));
  return {slope.t().mm(rows) + at.weight * decay, slope.sum(0)};
}

double dot(const Point& a, const Point& b) {
  return ((a.weight * b.weight).sum() + (a.bias * b.bias).sum()).item<double>();
}

}  // namespace

SoftmaxRegression softmax_regression(const at::Tensor& features, const at::Tensor& classes,
                                     std::int64_t class_count, double penalty) {
  const torch::NoGradGuard no_gradient;
  const at::Tensor rows = features.to(torch::kFloat64);
  const at::Tensor labels = classes.to(rows.device());
  const Basis basis = find_basis(rows, penalty);
  const at::Tensor inputs = (rows - basis.mean).mm(basis.basis);
  const at::Tensor decay = penalty * basis.length;

  const auto zeros = [&] {
    return Point{torch::zeros({class_count, rows.size(1)}, rows.options()),
                 torch::zeros({class_count}, rows.options())};
  };
  // Nowhere is the curvature above 1 in this basis, so a step of 1 always descends.
  Point last = zeros(), ahead = zeros();
  double first_length = 0, momentum = 1;
  std::int64_t steps = 0;
  while (steps < kMostSteps) {
    const Point slope = gradient(inputs, labels, ahead, decay);
    const double length = std::sqrt(dot(slope, slope));
    if (steps++ == 0) first_length = length;
    const Point next{ahead.weight - slope.weight, ahead.bias - slope.bias};
    const Point moved{next.weight - last.weight, next.bias - last.bias};
    last = next;
    if (length <= kTolerance * first_length) break;
    // Momentum that carries uphill is given up.
    if (dot(slope, moved) > 0) momentum = 1;
    const double following = (1 + std::sqrt(1 + 4 * momentum * momentum)) / 2;
    const double share = (momentum - 1) / following;
    momentum = following;
    ahead = {next.weight + share * moved.weight, next.bias + share * moved.bias};
  }

  SoftmaxRegression result;
  result.weight = last.weight.mm(basis.basis.t());
  result.bias = last.bias - result.weight.mv(basis.mean);
  result.penalty = penalty;
  result.steps = steps;
  return result;
}

SoftmaxRegression softmax_regression(const at::Tensor& features, const at::Tensor& classes,
                                     std::int64_t class_count,
                                     const std::vector<double>& penalties) {
  double best = penalties.at(0);
  if (penalties.size() > 1 && features.size(0) >= kHeldOut) {
    const at::Tensor held_out =
        torch::arange(features.size(0), features.device()).remainder(kHeldOut) == kHeldOut - 1;
    const at::Tensor labels = classes.to(features.device());
    const at::Tensor checked = features.index({held_out}).to(torch::kFloat64);
    double most = -1;
    for (const double penalty : penalties) {
      const auto fitted = softmax_regression(features.index({~held_out}), labels.index({~held_out}),
                                             class_count, penalty);
      const at::Tensor chosen = torch::addmm(fitted.bias, checked, fitted.weight.t()).argmax(1) ==
                                labels.index({held_out});
      const double right = chosen.to(torch::kFloat64).mean().item<double>();
      if (right > most) best = penalty;
      most = std::max(most, right);
    }
  }
  return softmax_regression(features, classes, class_count, best);
}

}  // namespace riffle

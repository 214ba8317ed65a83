// Softmax regression on features computed once: the classifier that minimises the mean
// cross-entropy and a penalty on the squared length of its weights.
//
// The problem is convex: one solution, no rate to tune, nothing random. It is solved by accelerated
// gradient descent in a basis in which the features have the same spread in all directions. Double
// precision. Each step costs two products of [n, d] with [d, classes].
#pragma once

#include <cstdint>
#include <vector>

#include <ATen/core/Tensor.h>

namespace riffle {

// A channel that varies less than this, on features of unit length, is constant but for rounding.
inline constexpr double kLeastStd = 1e-6;

struct SoftmaxRegression {
  at::Tensor weight;  // [classes, d] double, for the features as given
  at::Tensor bias;    // [classes]
  double penalty = 0;
  std::int64_t steps = 0;
};

// Fits with one penalty. `features`: [n, d] on any device; they are standardised channel by channel
// for the penalty. `classes`: [n] int64.
SoftmaxRegression softmax_regression(const at::Tensor& features, const at::Tensor& classes,
                                     std::int64_t class_count, double penalty);

// Fits with that one of the penalties which does best on every fifth row when fitted on the others.
SoftmaxRegression softmax_regression(const at::Tensor& features, const at::Tensor& classes,
                                     std::int64_t class_count,
                                     const std::vector<double>& penalties);

}  // namespace riffle

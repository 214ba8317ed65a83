// Batch normalisation, an optional residual added to it, and an optional ReLU, as one
// differentiable operation.
//
// On the CPU (float32) and on a GPU (float32 or bfloat16) it is one operation that reads each map,
// channels last, as few times as it can and normalises several views of a batch in one pass, each
// by its own statistics; elsewhere it is put together from torch's operations. Statistics, weight
// and bias are float32. The result does not depend on the number of threads.
#pragma once

#include <cstdint>

#include <torch/types.h>

#include "riffle/dist/ranks.h"

namespace riffle {

struct BatchNormTensors {
  // Both undefined: no affine part.
  torch::Tensor weight;
  torch::Tensor bias;
  // In training moved towards each view's statistics in turn.
  torch::Tensor running_mean;
  torch::Tensor running_var;
  double momentum;
  double epsilon;
  // In training, statistics are over the batches of all these ranks; null: over this batch alone.
  Ranks* ranks = nullptr;
};

// The same numbers twice, for two users: a GPU takes the gradients of both in one pass, where
// autograd would have to add them up first.
struct Fork {
  torch::Tensor first, second;
};

// Returns the means and variances of all ranks' rows together, [views, 2, channels], from those of
// this rank's own, of which there are as many on each.
torch::Tensor moments_of_all(const torch::Tensor& own, Ranks& ranks);

// Returns the normalised maps. `x` is [views * n, channels] or [views * n, channels, height,
// width]; `residual`, if defined, has the same shape. May overwrite `x` when not training and no
// gradient is wanted. Throws Error if a training batch has one row per view. Gradients of weight
// and bias are this rank's share, to be summed over ranks.
torch::Tensor batch_norm(const BatchNormTensors& norm, const torch::Tensor& x, bool training,
                         std::int64_t views, bool relu, const torch::Tensor& residual);
Fork batch_norm_forked(const BatchNormTensors& norm, const torch::Tensor& x, bool training,
                       std::int64_t views, bool relu, const torch::Tensor& residual);

// As batch_norm() with a ReLU, then the largest of each 3x3 pixels, with stride 2 and padding 1. On
// a GPU (bfloat16) one operation too.
torch::Tensor batch_norm_relu_pool(const BatchNormTensors& norm, const torch::Tensor& x,
                                   bool training, std::int64_t views);

// As batch_norm(), from torch's operations alone, on any device and for any type. Requires that
// norm.ranks is null.
torch::Tensor batch_norm_composed(const BatchNormTensors& norm, const torch::Tensor& x,
                                  bool training, std::int64_t views, bool relu,
                                  const torch::Tensor& residual);

}  // namespace riffle

// The layers that encoders and heads consist of. Parameters and buffers have the names that torch
// uses.
//
// How a batch passes is an argument, not a flag of the module: the same network can serve
// evaluation while it is being trained. Pictures and maps are channels last. Weights are float32; a
// layer computes in the type of what it is given.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include <torch/nn/module.h>
#include <torch/types.h>

#include "riffle/model/batch_norm.h"
#include "riffle/model/init.h"

namespace riffle {

// Added to every variance in batch norm.
inline constexpr double kBatchNormEpsilon = 1e-5;

struct Pass {
  // With batch statistics, which the running ones follow; otherwise with running statistics.
  bool training = false;
  // The batch is this many equal batches one after the other, each normalised by its own
  // statistics.
  std::int64_t views = 1;
  // In training: where the batch norms that the batch passes leave their counters of batches. Only
  // files read those, so Objective counts for all at once.
  std::vector<torch::Tensor>* counters = nullptr;
  // In training: whose batch statistics are taken together; null: this rank's alone.
  Ranks* ranks = nullptr;
};

class Conv : public torch::nn::Module {
 public:
  Conv(const Init& init, std::int64_t in, std::int64_t out, std::int64_t kernel,
       std::int64_t stride);
  torch::Tensor forward(const torch::Tensor& maps) const;

 private:
  torch::Tensor weight_;
  std::int64_t stride_;
  std::int64_t padding_;
};

class Linear : public torch::nn::Module {
 public:
  Linear(const Init& init, std::int64_t in, std::int64_t out, bool bias);
  torch::Tensor forward(const torch::Tensor& rows) const;

 private:
  torch::Tensor weight_;
  torch::Tensor bias_;
};

// Batch normalisation of maps or rows with what usually follows it: a residual to add, a ReLU.
class BatchNorm : public torch::nn::Module {
 public:
  struct Options {
    bool affine = true;
    // Initial scale; 0 lets a residual block begin as the identity.
    double gamma = 1.0;
  };
  BatchNorm(std::int64_t channels, Options options);
  explicit BatchNorm(std::int64_t channels) : BatchNorm(channels, Options()) {}

  // May overwrite `maps` when no gradient is wanted.
  torch::Tensor forward(const torch::Tensor& maps, Pass pass, bool relu,
                        const torch::Tensor& residual = {}) const;

  // As forward() with a ReLU, for two users.
  Fork forward_forked(const torch::Tensor& maps, Pass pass, const torch::Tensor& residual) const;
  // As forward() with a ReLU, then the largest of each 3x3 pixels, with stride 2 and padding 1.
  torch::Tensor forward_and_pool(const torch::Tensor& maps, Pass pass) const;

 private:
  // What a pass needs; leaves the counter.
  BatchNormTensors tensors(Pass pass) const;

  torch::Tensor weight_;
  torch::Tensor bias_;
  torch::Tensor running_mean_;
  torch::Tensor running_var_;
  torch::Tensor batches_tracked_;
};

}  // namespace riffle

// Makes the gradients of all ranks (riffle/dist) their mean.
//
// While backward() runs, the gradients that are ready are collected in buckets, and a full bucket
// is summed over all ranks at once, so that much of the exchange is over when backward() is. One
// rank alone pays nothing. Not thread-safe.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include <torch/types.h>

#include "riffle/dist/ranks.h"
#include "riffle/model/objective.h"
#include "riffle/train/gradient_buckets.h"

namespace riffle {

// Returns the running statistics of each rank for itself, which have to be averaged; nothing if
// they are those of all ranks (model.sync_batch_norm).
std::vector<torch::Tensor> own_statistics(const Objective& objective);

class GradientExchange {
 public:
  // `objective`, which is on its device, and `ranks` must outlive this.
  GradientExchange(Objective& objective, Ranks& ranks);
  GradientExchange(const GradientExchange&) = delete;

  // Must be called before backward(), which must find no gradients.
  void begin();
  // Must be called after backward(), on all ranks: the gradients are then the mean over all ranks.
  // So are running statistics, if each rank has its own.
  void finish();

 private:
  // Of a bucket.
  struct Collected {
    at::Tensor values;  // on the CPU
    std::unique_ptr<Ranks::Sum> sum;
  };

  void take(std::optional<std::size_t> complete);

  Objective& objective_;
  Ranks& ranks_;
  std::vector<Collected> collected_;
  GradientBuckets buckets_;
};

}  // namespace riffle

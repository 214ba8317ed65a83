// Makes the gradients of ranks that exchange from GPU to GPU (riffle/dist/ranks_gpu.h) their mean,
// as a part of a recorded update.
//
// The gradients of a bucket are summed where they lie, on a stream beside the one that backward()
// computes on, so that the exchange runs while the gradients of earlier layers are computed. Not
// thread-safe.
#pragma once

#include <optional>
#include <vector>

#include <c10/core/Event.h>
#include <c10/cuda/CUDAStream.h>
#include <torch/types.h>

#include "riffle/dist/ranks.h"
#include "riffle/model/objective.h"
#include "riffle/train/gradient_buckets.h"

namespace riffle {

class GradientExchangeGpu {
 public:
  // Requires ranks.on_gpu(). `objective`, which is on the GPU, and `ranks` must outlive this.
  GradientExchangeGpu(Objective& objective, Ranks& ranks);

  // Must be called between the forward pass and backward(), which must find no gradients. Begins to
  // average running statistics, if each rank has its own, and `also`, a float32 tensor that lives
  // until finish().
  void begin(const torch::Tensor& also);
  // Returns what to call backward() with instead of 1: gradients are then this rank's share of the
  // mean.
  const torch::Tensor& share() const { return share_; }
  // Must be called after backward(): what follows on the current stream finds means of all ranks.
  void finish();

 private:
  template <typename Exchange>
  void beside(const Exchange& exchange);

  Objective& objective_;
  Ranks& ranks_;
  const torch::Tensor share_;
  const c10::cuda::CUDAStream side_;
  c10::Event before_{c10::kCUDA};
  c10::Event after_{c10::kCUDA};
  GradientBuckets buckets_;
};

}  // namespace riffle

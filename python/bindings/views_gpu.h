// Two views on a GPU for batches of any size, one after the other without waiting for the GPU; only
// in builds with CUDA.
#pragma once

#include <array>
#include <memory>

#include <ATen/cuda/CUDAEvent.h>

#include "riffle/augment/two_views_gpu.h"

namespace riffle::python {

class ViewsGpu {
 public:
  ViewsGpu(const AugmentConfig& config, std::uint64_t seed, ThreadPool& pool)
      : config_(config), seed_(seed), pool_(pool) {}

  // Returns whether the GPU can make views of these pictures.
  bool fits(const at::Tensor& pictures) const;
  // Returns what TwoViews does, in memory of its own. `pictures`: [n, side, side, 3] uint8.
  at::Tensor operator()(const at::Tensor& pictures, std::uint64_t step);

 private:
  AugmentConfig config_;
  std::uint64_t seed_;
  ThreadPool& pool_;

  // For the shape of the last batch.
  std::unique_ptr<TwoViewsGpu> views_;
  std::int64_t batch_ = 0;
  std::int64_t side_ = 0;
  // Of the last two calls: TwoViewsGpu may plan a step while the two before are carried out.
  std::array<at::cuda::CUDAEvent, 2> done_;
  std::size_t next_ = 0;
};

}  // namespace riffle::python

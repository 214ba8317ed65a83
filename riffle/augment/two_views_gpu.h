// Two random views of each picture of a batch, computed on a GPU (only in builds with CUDA): the
// same views as TwoViews makes, up to rounding.
//
// Random decisions are drawn on the host, a step ahead where that is possible, and carried out on
// the device. Memory is taken at construction. Not thread-safe.
#pragma once

#include <cstdint>
#include <memory>

#include <ATen/core/Tensor.h>

#include "riffle/augment/augment_config.h"
#include "riffle/augment/view_layout.h"
#include "riffle/augment/view_plan.h"
#include "riffle/base/thread_pool.h"

namespace riffle {

class TwoViewsGpu {
 public:
  // For batches of up to `batch` square pictures of `picture_size` px. `type`: float32 (layout
  // plain) or bfloat16. `places`: of these pictures in the batch, for a part of one. `pool` must
  // outlive this. Throws Error if the configuration is not valid.
  TwoViewsGpu(const AugmentConfig& config, std::uint64_t seed, ThreadPool& pool, std::int64_t batch,
              std::int64_t picture_size, ViewLayout layout, at::ScalarType type,
              const BatchPlaces& places = {});
  ~TwoViewsGpu();

  // Returns whether the current GPU can make views of this size.
  static bool fits(std::int64_t size, std::int64_t picture_size);

  // Draws the random decisions of a step. May be called while the GPU carries out the two steps
  // before.
  void plan(std::uint64_t step);
  // Sends the plan of a step to the device on the current stream, drawing it first if plan() has
  // not.
  void upload(std::uint64_t step);
  // Returns [2 * batch, ...]: first views, then second ones, by the plan last uploaded; with
  // `views` 1 the first ones alone. `pictures` is [batch, picture_size, picture_size, 3] uint8 on
  // the device, or twice as many: those of the first views, then those of the second ones. The
  // result is the same memory every time. Queues one kernel and can be recorded in a CUDA graph.
  at::Tensor render(const at::Tensor& pictures, std::int64_t views = kViews);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace riffle

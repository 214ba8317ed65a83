// Two random views of each picture of a batch, on the CPU, threaded.
//
// A view is a pure function of (seed, step, place in the batch, which view, picture): the same for
// any thread count.
#pragma once

#include <cstdint>
#include <span>

#include <ATen/core/Tensor.h>

#include "riffle/augment/augment_config.h"
#include "riffle/augment/normalize.h"
#include "riffle/augment/view_plan.h"
#include "riffle/base/thread_pool.h"

namespace riffle {

// Thread-safe: calls share nothing but the pool.
class TwoViews {
 public:
  // Throws Error if the configuration is not valid. `pool` must outlive this.
  TwoViews(const AugmentConfig& config, std::uint64_t seed, ThreadPool& pool);

  // Returns [2 * slots.size(), 3, size, size] float32, channels-last, ImageNet-normalised: the
  // first views of all slots, then their second views. `pictures`: [slots, height, width, 3] uint8,
  // contiguous, on the CPU. `step` counts calls of one purpose: the update, for training. `second`:
  // the slots that second views are made of, as many; empty: the same. `places`: of these pictures
  // in the batch, for a part of one. Throws std::invalid_argument for another kind of tensor or
  // another number, std::out_of_range for a slot outside of it.
  at::Tensor operator()(const at::Tensor& pictures, std::span<const std::int64_t> slots,
                        std::uint64_t step, std::span<const std::int64_t> second = {},
                        const BatchPlaces& places = {}) const;

  // Returns the first views alone, at half the cost: what a probe trains on.
  at::Tensor one_view(const at::Tensor& pictures, std::span<const std::int64_t> slots,
                      std::uint64_t step) const;

 private:
  at::Tensor make(const at::Tensor& pictures, std::span<const std::int64_t> slots,
                  std::span<const std::int64_t> second, std::uint64_t step,
                  const BatchPlaces& places, std::int64_t views) const;

  AugmentConfig config_;
  std::uint64_t seed_;
  ThreadPool* pool_;
};

}  // namespace riffle

// Two random views of each picture of a batch, on the CPU, threaded.
//
// A view is a pure function of (seed, step, place in the batch, which view, picture): the same for any thread count.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <span>
#include <utility>

#include "riffle/augment/augment_config.h"
#include "riffle/base/thread_pool.h"

namespace riffle {

class TwoViews {
 public:
  // `pool` must outlive this.
  TwoViews(const AugmentConfig& config, std::uint64_t seed, ThreadPool& pool);

  // `pictures`: [slots, side, side, 3] uint8, contiguous. `step` counts calls of one purpose: the update, for training.
  // Gives two [slots.size(), 3, size, size] float32 tensors, channels-last, ImageNet-normalised.
  std::pair<at::Tensor, at::Tensor> operator()(const at::Tensor& pictures,
                                               std::span<const std::int64_t> slots,
                                               std::uint64_t step) const;

 private:
  AugmentConfig config_;
  std::uint64_t seed_;
  ThreadPool* pool_;
};

// ImageNet's mean and standard deviation per channel, of values in [0, 1].
inline constexpr float kMean[3] = {0.485f, 0.456f, 0.406f};
inline constexpr float kStd[3] = {0.229f, 0.224f, 0.225f};

// Pictures without augmentation, normalised the same way: what probes and features on arrival see.
// [n, side, side, 3] uint8 -> [n, 3, side, side] float32, channels-last.
at::Tensor normalize(const at::Tensor& pictures);

}  // namespace riffle

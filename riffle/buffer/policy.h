// Who leaves a replay buffer. A policy sees slots, the order of arrival and features; never pictures.
//
// A slot is an index into the buffer's slab and is used again after its sample left. Used by one thread.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "riffle/buffer/buffer_config.h"

namespace riffle {

using Slot = std::int64_t;

class Policy {
 public:
  virtual ~Policy() = default;

  // `slots` now hold new samples, in order of arrival. `features` is [slots, dim] float32, or undefined when they have
  // none yet.
  virtual void inserted(std::span<const Slot> slots, const at::Tensor& features) = 0;

  // `slots` were drawn for training and the network gave these features for them.
  virtual void tracked(std::span<const Slot> slots, const at::Tensor& features) = 0;

  // The n samples that leave, in the order in which they leave; the policy forgets them. n is at most the number it holds.
  virtual std::vector<Slot> evict(std::int64_t n) = 0;

  // Everything a restored policy needs to decide the same: named tensors on the CPU.
  virtual std::vector<std::pair<std::string, at::Tensor>> save() const = 0;
  virtual void restore(const std::vector<std::pair<std::string, at::Tensor>>& state) = 0;
};

}  // namespace riffle

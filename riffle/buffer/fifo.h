// First in, first out: the newest samples stay. O(1) a sample.
#pragma once

#include <deque>

#include "riffle/buffer/policy.h"

namespace riffle {

class Fifo : public Policy {
 public:
  void inserted(std::span<const Slot> slots, const at::Tensor& features) override;
  std::vector<Slot> evict(std::int64_t n) override;
  PolicyStats stats(bool nearest) const override;
  NamedTensors save() const override;
  void restore(const NamedTensors& state) override;
  // See PolicyKind.
  static SavedPolicy read(const NamedTensors& state, std::int64_t slots);

 private:
  std::deque<Slot> queue_;  // oldest first
  std::int64_t evicted_ = 0;
};

}  // namespace riffle

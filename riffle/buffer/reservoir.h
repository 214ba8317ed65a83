// A uniform random choice of all that ever arrived: after N arrivals each of them is still held
// with probability B / N.
//
// Every arrival gets a random priority and the B smallest stay, which is reservoir sampling in the
// form that allows batches: whoever is evicted, old or just arrived, has the largest priority of
// all present. O(log B) a sample.
#pragma once

#include "riffle/buffer/policy.h"

namespace riffle {

class Reservoir : public Policy {
 public:
  explicit Reservoir(std::uint64_t seed) : seed_(seed) {}
  explicit Reservoir(const PolicySetting& setting) : Reservoir(setting.seed) {}

  void inserted(std::span<const Slot> slots, const at::Tensor& features) override;
  std::vector<Slot> evict(std::int64_t n) override;
  PolicyStats stats(bool nearest) const override;
  NamedTensors save() const override;
  void restore(const NamedTensors& state) override;
  // See PolicyKind.
  static SavedPolicy read(const NamedTensors& state, std::int64_t slots);

 private:
  struct Entry {
    std::uint64_t priority;
    std::uint64_t arrival;
    Slot slot;
    // Two arrivals may draw the same priority: the later one leaves first.
    auto operator<=>(const Entry&) const = default;
  };
  void push(std::uint64_t arrival, Slot slot);

  std::uint64_t seed_;
  std::uint64_t arrivals_ = 0;
  std::vector<Entry> heap_;  // the largest on top
  std::int64_t evicted_ = 0;
};

}  // namespace riffle

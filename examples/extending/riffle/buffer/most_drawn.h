// Whoever was drawn most often leaves first; among equals the oldest. O(log B) a sample.
#pragma once

#include <set>
#include <tuple>
#include <unordered_map>

#include "riffle/buffer/policy.h"

namespace riffle {

class MostDrawn : public Policy {
 public:
  void inserted(std::span<const Slot> slots, const at::Tensor& features) override;
  void drawn(std::span<const Slot> slots) override;
  std::vector<Slot> evict(std::int64_t n) override;
  PolicyStats stats(bool nearest) const override;
  NamedTensors save() const override;
  void restore(const NamedTensors& state) override;
  // See PolicyKind.
  static SavedPolicy read(const NamedTensors& state, std::int64_t slots);

 private:
  struct Entry {
    std::int64_t draws;
    std::int64_t arrival;
    Slot slot;
    bool operator<(const Entry& other) const {
      return std::tuple(-draws, arrival) < std::tuple(-other.draws, other.arrival);
    }
  };
  void add(const Entry& entry);

  std::set<Entry> order_;  // who leaves first is first
  std::unordered_map<Slot, std::set<Entry>::iterator> places_;
  std::int64_t arrivals_ = 0;
  std::int64_t evicted_ = 0;
};

}  // namespace riffle

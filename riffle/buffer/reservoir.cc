#include "riffle/buffer/reservoir.h"

#include <algorithm>

#include <ATen/ATen.h>

#include "riffle/base/random.h"

namespace riffle {

void Reservoir::push(std::uint64_t arrival, Slot slot) {
  heap_.push_back({Random(seed_, Purpose("reservoir"), arrival).bits64(), arrival, slot});
  std::push_heap(heap_.begin(), heap_.end());
}

void Reservoir::inserted(std::span<const Slot> slots, const at::Tensor& /*features*/) {
  for (const Slot slot : slots) push(arrivals_++, slot);
}

std::vector<Slot> Reservoir::evict(std::int64_t n) {
  std::vector<Slot> leaving;
  for (std::int64_t i = 0; i < n; ++i) {
    std::pop_heap(heap_.begin(), heap_.end());
    leaving.push_back(heap_.back().slot);
    heap_.pop_back();
  }
  evicted_ += n;
  return leaving;
}

PolicyStats Reservoir::stats(bool /*nearest*/) const { return {{{"random", evicted_}}, 0, {}}; }

NamedTensors Reservoir::save() const {
  // Priorities follow from the arrival numbers.
  std::vector<std::int64_t> arrivals;
  std::vector<std::int64_t> slots;
  for (const auto& entry : heap_) {
    arrivals.push_back(static_cast<std::int64_t>(entry.arrival));
    slots.push_back(entry.slot);
  }
  return {{"arrivals", integers_tensor(arrivals)},
          {"slots", integers_tensor(slots)},
          {"counts", integers_tensor(std::vector<std::int64_t>{static_cast<std::int64_t>(arrivals_),
                                                               evicted_})}};
}

void Reservoir::restore(const NamedTensors& state) {
  const auto slots = find_integers(state, "slots");
  const auto arrivals = find_integers(state, "arrivals", static_cast<std::int64_t>(slots.size()));
  const auto counts = find_integers(state, "counts", 2);
  heap_.clear();
  for (std::size_t i = 0; i < slots.size(); ++i) {
    push(static_cast<std::uint64_t>(arrivals[i]), slots[i]);
  }
  arrivals_ = static_cast<std::uint64_t>(counts[0]);
  evicted_ = counts[1];
}

SavedPolicy Reservoir::read(const NamedTensors& state, std::int64_t /*slots*/) {
  return {.slots = find_integers(state, "slots")};
}

}  // namespace riffle

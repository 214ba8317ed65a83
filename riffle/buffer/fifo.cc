#include "riffle/buffer/fifo.h"

#include <ATen/ATen.h>

namespace riffle {

void Fifo::inserted(std::span<const Slot> slots, const at::Tensor& /*features*/) {
  queue_.insert(queue_.end(), slots.begin(), slots.end());
}

std::vector<Slot> Fifo::evict(std::int64_t n) {
  const auto end = queue_.begin() + n;
  std::vector<Slot> leaving(queue_.begin(), end);
  queue_.erase(queue_.begin(), end);
  evicted_ += n;
  return leaving;
}

PolicyStats Fifo::stats(bool /*nearest*/) const { return {{{"oldest", evicted_}}, 0, {}}; }

NamedTensors Fifo::save() const {
  return {{"queue", integers_tensor(std::vector<Slot>(queue_.begin(), queue_.end()))},
          {"evicted", integers_tensor(std::vector<std::int64_t>{evicted_})}};
}

void Fifo::restore(const NamedTensors& state) {
  const auto queue = find_integers(state, "queue");
  evicted_ = find_integers(state, "evicted", 1).front();
  queue_.assign(queue.begin(), queue.end());
}

SavedPolicy Fifo::read(const NamedTensors& state, std::int64_t /*slots*/) {
  return {.slots = find_integers(state, "queue")};
}

}  // namespace riffle

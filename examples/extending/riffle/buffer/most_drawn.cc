#include "riffle/buffer/most_drawn.h"

#include <ATen/ATen.h>

namespace riffle {

void MostDrawn::add(const Entry& entry) { places_[entry.slot] = order_.insert(entry).first; }

void MostDrawn::inserted(std::span<const Slot> slots, const at::Tensor& /*features*/) {
  for (const Slot slot : slots) add({0, arrivals_++, slot});
}

void MostDrawn::drawn(std::span<const Slot> slots) {
  for (const Slot slot : slots) {
    Entry entry = order_.extract(places_.at(slot)).value();
    ++entry.draws;
    add(entry);
  }
}

std::vector<Slot> MostDrawn::evict(std::int64_t n) {
  std::vector<Slot> leaving;
  for (std::int64_t i = 0; i < n; ++i) {
    leaving.push_back(order_.begin()->slot);
    places_.erase(leaving.back());
    order_.erase(order_.begin());
  }
  evicted_ += n;
  return leaving;
}

PolicyStats MostDrawn::stats(bool /*nearest*/) const { return {{{"most_drawn", evicted_}}, 0, {}}; }

NamedTensors MostDrawn::save() const {
  std::vector<std::int64_t> draws, arrivals, slots;
  for (const Entry& entry : order_) {
    draws.push_back(entry.draws);
    arrivals.push_back(entry.arrival);
    slots.push_back(entry.slot);
  }
  return {{"draws", integers_tensor(draws)},
          {"arrivals", integers_tensor(arrivals)},
          {"slots", integers_tensor(slots)},
          {"counts", integers_tensor(std::vector<std::int64_t>{arrivals_, evicted_})}};
}

void MostDrawn::restore(const NamedTensors& state) {
  const auto slots = find_integers(state, "slots");
  const auto count = static_cast<std::int64_t>(slots.size());
  const auto draws = find_integers(state, "draws", count);
  const auto arrivals = find_integers(state, "arrivals", count);
  const auto counts = find_integers(state, "counts", 2);
  order_.clear();
  places_.clear();
  for (std::size_t i = 0; i < slots.size(); ++i) add({draws[i], arrivals[i], slots[i]});
  arrivals_ = counts[0];
  evicted_ = counts[1];
}

SavedPolicy MostDrawn::read(const NamedTensors& state, std::int64_t /*slots*/) {
  return {.slots = find_integers(state, "slots")};
}

}  // namespace riffle

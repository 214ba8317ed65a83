#include "riffle/buffer/pair_policy.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include <ATen/ATen.h>

#include "riffle/base/error.h"
#include "riffle/base/text.h"
#include "riffle/tensors/unit_length.h"

namespace riffle {

PairPolicy::PairPolicy(const BufferConfig& config, const NearestIndexConfig& index,
                       std::string reason)
    : momentum_(config.momentum),
      draw_limit_(config.draw_limit),
      reason_(std::move(reason)),
      index_(NearestIndex::create(index)),
      records_(static_cast<std::size_t>(index.slots)) {}

std::vector<std::uint64_t> PairPolicy::arrivals_of(std::span<const Slot> slots) const {
  std::vector<std::uint64_t> arrivals;
  for (const Slot slot : slots) {
    arrivals.push_back(records_[static_cast<std::size_t>(slot)].arrival);
  }
  return arrivals;
}

void PairPolicy::inserted(std::span<const Slot> slots, const at::Tensor& features) {
  set_features(slots, features);
  record_arrivals(slots);
}

void PairPolicy::set_features(std::span<const Slot> slots, const at::Tensor& features) {
  if (!features.defined()) return;
  std::vector<std::uint64_t> ages;
  for (std::size_t i = 0; i < slots.size(); ++i) ages.push_back(arrivals_ + i);
  index_->set(slots, ages, with_direction(features));
}

void PairPolicy::record_arrivals(std::span<const Slot> slots) {
  for (const Slot slot : slots) {
    record(slot) = {arrivals_, 0};
    held_.emplace_hint(held_.end(), arrivals_++, slot);
  }
}

void PairPolicy::drawn(std::span<const Slot> slots) {
  for (const Slot slot : slots) {
    ++record(slot).draws;
    if (worn_out(record(slot))) worn_.emplace(record(slot).arrival, slot);
  }
}

void PairPolicy::tracked(std::span<const Slot> slots, const at::Tensor& features) {
  index_->blend(slots, arrivals_of(slots), with_direction(features), momentum_);
}

void PairPolicy::forget(Slot slot) {
  held_.erase(record(slot).arrival);
  worn_.erase(record(slot).arrival);
}

std::vector<Slot> PairPolicy::take_oldest(const ByAge& candidates, std::int64_t n) {
  std::vector<Slot> leaving;
  std::vector<Slot> with_feature;
  for (auto oldest = candidates.begin(); n > 0; ++oldest, --n) {
    leaving.push_back(oldest->second);
    if (index_->contains(oldest->second)) with_feature.push_back(oldest->second);
  }
  index_->erase(with_feature);
  for (const Slot slot : leaving) forget(slot);
  return leaving;
}

std::vector<Slot> PairPolicy::evict(std::int64_t n) {
  const auto worn = std::min(n, static_cast<std::int64_t>(worn_.size()));
  // What a GPU refused before is reported while nothing has changed.
  if (worn > 0) index_->check();
  auto leaving = take_oldest(worn_, worn);
  evicted_worn_ += worn;

  const auto rest = n - worn;
  std::vector<Slot> others;
  if (index_->size() < 2 * rest) {
    others = take_oldest(held_, rest);
    evicted_oldest_ += rest;
  } else {
    for (const Removal& removal : index_->take_most_redundant(rest)) others.push_back(removal.slot);
    for (const Slot slot : others) forget(slot);
    evicted_of_pairs_ += rest;
  }
  leaving.insert(leaving.end(), others.begin(), others.end());
  return leaving;
}

PolicyStats PairPolicy::stats(bool nearest) const {
  PolicyStats stats;
  stats.evictions = {
      {reason_, evicted_of_pairs_}, {"oldest", evicted_oldest_}, {"draw_limit", evicted_worn_}};
  stats.with_feature = index_->size();
  if (!nearest || stats.with_feature < 2) return stats;

  const auto all = index_->nearest_distances();
  const auto* distance = all.const_data_ptr<float>();
  std::vector<float> distances;
  for (const auto& [arrival, slot] : held_) {
    if (index_->contains(slot)) distances.push_back(distance[slot]);
  }
  std::ranges::sort(distances);
  for (int tenth = 0; tenth <= 10; ++tenth) {
    const auto place = std::lround(tenth / 10.0 * static_cast<double>(distances.size() - 1));
    stats.nearest.push_back(distances[static_cast<std::size_t>(place)]);
  }
  return stats;
}

NamedTensors PairPolicy::save() const {
  std::vector<std::int64_t> arrivals;
  std::vector<std::int64_t> slots;
  std::vector<std::int64_t> draws;
  for (const auto& [arrival, slot] : held_) {
    arrivals.push_back(static_cast<std::int64_t>(arrival));
    slots.push_back(slot);
    draws.push_back(records_[static_cast<std::size_t>(slot)].draws);
  }
  NamedTensors state = {{"arrivals", integers_tensor(arrivals)},
                        {"slots", integers_tensor(slots)},
                        {"draws", integers_tensor(draws)},
                        {"counts", integers_tensor(std::vector<std::int64_t>{
                                       static_cast<std::int64_t>(arrivals_), evicted_of_pairs_,
                                       evicted_oldest_, evicted_worn_})}};
  add_part(state, "index.", index_->save());
  return state;
}

void PairPolicy::restore(const NamedTensors& state) {
  const auto slots = find_integers(state, "slots");
  const auto count = static_cast<std::int64_t>(slots.size());
  const auto arrivals = find_integers(state, "arrivals", count);
  const auto draws = find_integers(state, "draws", count);
  const auto counts = find_integers(state, "counts", 4);
  held_.clear();
  worn_.clear();
  for (std::size_t i = 0; i < slots.size(); ++i) {
    if (slots[i] < 0 || slots[i] >= static_cast<std::int64_t>(records_.size())) {
      throw Error(cat("saved state: the buffer's policy holds slot ", slots[i],
                      ", which is not one of ", records_.size()));
    }
    const auto arrival = static_cast<std::uint64_t>(arrivals[i]);
    record(slots[i]) = {arrival, draws[i]};
    if (!held_.emplace(arrival, slots[i]).second) {
      throw Error(cat("saved state: the buffer's policy holds sample ", arrival, " twice"));
    }
    if (worn_out(record(slots[i]))) worn_.emplace(arrival, slots[i]);
  }
  arrivals_ = static_cast<std::uint64_t>(counts[0]);
  evicted_of_pairs_ = counts[1];
  evicted_oldest_ = counts[2];
  evicted_worn_ = counts[3];
  index_->restore(find_part(state, "index."));
}

SavedPolicy PairPolicy::read(const NamedTensors& state, std::int64_t slots) {
  auto index = NearestIndex::read(find_part(state, "index."), slots);
  return {.slots = find_integers(state, "slots"),
          .features = index.rows,
          .has_feature = index.present,
          .weights = std::move(index.weights)};
}

}  // namespace riffle

#include "riffle/buffer/nearest_index_cpu.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <limits>

#include <ATen/ATen.h>
#include <ATen/Parallel.h>

#include "riffle/buffer/merge_cost.h"

namespace riffle {
namespace {

constexpr float kNever = std::numeric_limits<float>::quiet_NaN();

// Order of the heap: the row that could own the pair to go next is on top.
constexpr auto later = [](const auto& a, const auto& b) {
  return a.key != b.key ? a.key > b.key : a.change > b.change;
};

}  // namespace

NearestIndexCpu::NearestIndexCpu(const NearestIndexConfig& config)
    : NearestIndex(config),
      inverse_norms_(config.slots, 0.0),
      scales_(config.slots, kNever),
      all_slots_(config.slots) {
  rows_ = at::zeros({config.slots, config.dim}, stored_type());
  for (std::int64_t slot = 0; slot < config.slots; ++slot) {
    all_slots_[slot] = static_cast<std::int32_t>(slot);
  }
  stats_.allowed_rounding = float32_rounding(config.dim);
  if (!config.merge) return;
  stats_.allowed_rounding += merge_rounding(config.merge->reach);
  inverse_weights_.assign(config.slots, 1.0f);
  ones_.assign(kColumnBlock, 1.0f);
}

std::uint64_t NearestIndexCpu::own_bytes(const NearestIndexConfig& config) {
  const std::uint64_t element = config.type == FeatureType::float32 ? 4 : 2;
  const std::uint64_t per_slot = config.dim * element + 8 + 4 + 4 + 4 + 2 * sizeof(Waiting);
  // For each thread a block of products, one of columns and one of rows.
  const std::uint64_t scratch =
      at::get_num_threads() * (kRowBlock * (kColumnBlock * 4 + sizeof(Best)) +
                               (kColumnBlock + kRowBlock) * config.dim * (4 + element));
  return config.slots * per_slot + scratch;
}

const float* NearestIndexCpu::row(std::int64_t slot, float* room) const {
  const std::int64_t at = slot * config_.dim;
  switch (config_.type) {
    case FeatureType::float32:
      return data<float>(rows_) + at;
    case FeatureType::float16:
      widen_float16(data<std::uint16_t>(rows_) + at, config_.dim, room);
      return room;
    case FeatureType::bfloat16:
      widen_bfloat16(data<std::uint16_t>(rows_) + at, config_.dim, room);
      return room;
  }
  return nullptr;
}

DistanceKey NearestIndexCpu::key_of(std::int64_t a, std::int64_t b, const float* row_a,
                                    float* room) const {
  return distance_key(dot64(row_a, row(b, room), config_.dim),
                      inverse_norms_[a] * inverse_norms_[b]);
}

void NearestIndexCpu::write(std::span<const std::int64_t> slots, std::span<const std::uint64_t>,
                            const at::Tensor& features, double momentum, std::uint64_t) {
  const auto count = static_cast<std::int64_t>(slots.size());
  const std::int64_t dim = config_.dim;
  at::Tensor fresh = at::empty({count, dim}, at::kFloat);
  std::atomic<std::int64_t> bad{count};
  at::parallel_for(0, count, grain(4 * dim), [&](std::int64_t begin, std::int64_t end) {
    std::vector<float> room(dim);
    for (std::int64_t r = begin; r < end; ++r) {
      const float* feature = data<float>(features) + r * dim;
      float* out = data<float>(fresh) + r * dim;
      const double square = dot64(feature, feature, dim);
      if (!std::isfinite(square) || square == 0.0) {
        std::int64_t seen = bad.load();
        while (r < seen && !bad.compare_exchange_weak(seen, r)) {
        }
        continue;
      }
      const double inverse = 1.0 / std::sqrt(square);
      if (momentum > 0.0 && changed_[slots[r]] != 0) {
        const float* old = row(slots[r], room.data());
        for (std::int64_t i = 0; i < dim; ++i) {
          out[i] =
              static_cast<float>(momentum * old[i] + (1.0 - momentum) * (feature[i] * inverse));
        }
        const double blended = dot64(out, out, dim);
        if (blended > kCancelled) {
          const double shorten = 1.0 / std::sqrt(blended);
          for (std::int64_t i = 0; i < dim; ++i) out[i] = static_cast<float>(out[i] * shorten);
          continue;
        }
      }
      for (std::int64_t i = 0; i < dim; ++i) out[i] = static_cast<float>(feature[i] * inverse);
    }
  });
  if (bad.load() < count) refuse_feature(slots[bad.load()]);

  const at::Tensor stored = fresh.to(rows_.scalar_type());
  const std::size_t row_bytes = dim * stored.element_size();
  std::vector<float> room(dim);
  for (std::int64_t r = 0; r < count; ++r) {
    const std::int64_t slot = slots[r];
    const char* from = data<char>(stored) + r * row_bytes;
    std::copy(from, from + row_bytes, data<char>(rows_) + slot * row_bytes);
    const float* values = row(slot, room.data());
    inverse_norms_[slot] = 1.0 / std::sqrt(dot64(values, values, dim));
    scales_[slot] = kNever;
    set_inverse_weight(slot);
  }
}

void NearestIndexCpu::set_inverse_weight(std::int64_t slot) {
  if (config_.merge) inverse_weights_[slot] = static_cast<float>(1.0 / weights_[slot]);
}

void NearestIndexCpu::raised(std::span<const std::int64_t> slots) {
  for (const std::int64_t slot : slots) set_inverse_weight(slot);
}

void NearestIndexCpu::reweigh() {
  heap_.clear();
  for (std::int64_t slot = 0; slot < config_.slots; ++slot) {
    scales_[slot] = kNever;
    set_inverse_weight(slot);
  }
}

void NearestIndexCpu::forget(std::span<const std::int64_t> slots) {
  for (const std::int64_t slot : slots) scales_[slot] = kNever;
}

void NearestIndexCpu::drop(std::int64_t slot) {
  changed_[slot] = 0;
  scales_[slot] = kNever;
}

void NearestIndexCpu::replace(const at::Tensor& stored) {
  rows_.copy_(stored);
  heap_.clear();
  std::vector<float> room(config_.dim);
  for (std::int64_t slot = 0; slot < config_.slots; ++slot) {
    scales_[slot] = kNever;
    set_inverse_weight(slot);
    if (changed_[slot] == 0) continue;
    const float* values = row(slot, room.data());
    inverse_norms_[slot] = 1.0 / std::sqrt(dot64(values, values, config_.dim));
    // Rows that wait for their scan are pushed, and given their scale, when they have had it.
    if (is_pending(slot)) continue;
    scales_[slot] = static_cast<float>(inverse_norms_[slot]);
    push(slot);
  }
}

void NearestIndexCpu::product(at::Tensor& out, const at::Tensor& a, const at::Tensor& b) const {
  at::mm_out(out, a.to(at::kFloat), b.to(at::kFloat).t());
}

DistanceKey NearestIndexCpu::cost(DistanceKey distance, std::int64_t a, std::int64_t b) const {
  if (!config_.merge) return distance;
  return merge_cost(distance, merge_factor(weights_[a], weights_[b], config_.merge->quarters),
                    config_.merge->key_reach());
}

std::int64_t NearestIndexCpu::who_leaves(std::int64_t a, std::int64_t b) const {
  const bool a_is_older = ages_[a] != ages_[b] ? ages_[a] < ages_[b] : a < b;
  if (config_.merge && config_.merge->stays == StayRule::drawn) {
    const auto [older, newer] = a_is_older ? std::pair(a, b) : std::pair(b, a);
    const bool stays = older_stays(ages_[older], ages_[newer], weights_[older], weights_[newer]);
    return stays ? newer : older;
  }
  if (config_.merge && weights_[a] != weights_[b]) return weights_[a] < weights_[b] ? a : b;
  return a_is_older == (config_.tie == TieRule::older) ? a : b;
}

Removal NearestIndexCpu::remove(std::int64_t a, std::int64_t b, DistanceKey distance) {
  const std::int64_t leaver = who_leaves(a, b);
  const std::int64_t stayer = leaver == a ? b : a;
  drop(leaver);
  if (config_.merge) {
    weights_[stayer] = merged_weight(weights_[stayer], weights_[leaver], distance,
                                     config_.merge->key_reach(), config_.merge->weight_limit);
    set_inverse_weight(stayer);
  }
  return {leaver, stayer};
}

std::vector<Removal> NearestIndexCpu::take(std::span<const std::int64_t> changed, std::int64_t n) {
  scan(changed);
  // A row that changes leaves its old entry behind; now and then they are swept out.
  if (heap_.size() + changed.size() > 2 * changed_.size()) {
    std::erase_if(heap_, [this](const Waiting& w) { return changed_[w.slot] != w.change; });
    std::make_heap(heap_.begin(), heap_.end(), later);
  }
  for (const std::int64_t slot : changed) push(slot);
  std::vector<Removal> taken;
  taken.reserve(n);
  while (static_cast<std::int64_t>(taken.size()) < n && !heap_.empty()) {
    std::pop_heap(heap_.begin(), heap_.end(), later);
    Waiting top = heap_.back();
    heap_.pop_back();
    if (changed_[top.slot] != top.change) continue;
    ++stats_.examined;
    Nearest nearest = nearest_of(top.slot);
    if (nearest.key == kNoKey) continue;
    if (nearest.key == top.key && nearest.slot < 0) {
      rescan(top.slot);
      nearest = nearest_of(top.slot);
    }
    if (nearest.key == top.key && nearest.slot >= 0) {
      taken.push_back(remove(top.slot, nearest.slot, nearest.distance));
      if (taken.back().slot == top.slot) continue;
    }
    if (nearest.key == kNoKey) continue;
    heap_.push_back({nearest.key, top.change, top.slot});
    std::push_heap(heap_.begin(), heap_.end(), later);
  }
  // Rows without a pair are left only when a single one is.
  for (std::int64_t slot = 0; static_cast<std::int64_t>(taken.size()) < n; ++slot) {
    if (changed_[slot] == 0) continue;
    taken.push_back({slot, -1});
    drop(slot);
  }
  return taken;
}

void NearestIndexCpu::push(std::int64_t slot) {
  const Nearest nearest = nearest_of(slot);
  if (nearest.key == kNoKey) return;
  heap_.push_back({nearest.key, changed_[slot], slot});
  std::push_heap(heap_.begin(), heap_.end(), later);
}

NearestIndexCpu::Nearest NearestIndexCpu::nearest_of(std::int64_t slot) const {
  const std::int64_t k = config_.neighbours;
  const auto* slots = data<std::int32_t>(lists_.slots) + slot * k;
  const auto* keys = data<std::uint32_t>(lists_.keys) + slot * k;
  const DistanceKey bound = data<std::uint32_t>(lists_.bound_key)[slot];
  const auto bound_change =
      static_cast<std::uint64_t>(data<std::int64_t>(lists_.bound_change)[slot]);
  Nearest first;
  for (std::int64_t e = 0; e < k && slots[e] >= 0; ++e) {
    if (!owns(slot, slots[e])) continue;
    const DistanceKey key = cost(keys[e], slot, slots[e]);
    const bool earlier = first.slot < 0 || key < first.key ||
                         (key == first.key && changed_[slots[e]] < changed_[first.slot]);
    if (earlier) first = {key, slots[e], keys[e]};
    if (!config_.merge) break;  // the list is in order
  }
  if (first.slot < 0) return {.key = bound};
  const bool certain =
      first.key != bound ? first.key < bound : changed_[first.slot] <= bound_change;
  return certain ? first : Nearest{.key = bound};
}

}  // namespace riffle

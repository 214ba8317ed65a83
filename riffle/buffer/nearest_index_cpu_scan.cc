// How the CPU index compares rows with all others: many at once through a float32 product, or one
// in float64.
#include <algorithm>
#include <limits>
#include <mutex>

#include <ATen/ATen.h>
#include <ATen/Parallel.h>

#include "riffle/buffer/merge_cost.h"
#include "riffle/buffer/nearest_index_cpu.h"
#include "riffle/tensors/named_tensors.h"

namespace riffle {
// A thread takes a group of changed rows through all columns: one fork and join for the whole scan,
// and products that stay in the thread's cache.
void NearestIndexCpu::scan(std::span<const std::int64_t> rows_changed) {
  const auto count = static_cast<std::int64_t>(rows_changed.size());
  Changed changed{rows_changed, {rows_changed.begin(), rows_changed.end()}, {}, {}};
  for (const std::int64_t slot : rows_changed) {
    changed.scales.push_back(static_cast<float>(inverse_norms_[slot]));
    if (config_.merge) changed.inverse_weights.push_back(inverse_weights_[slot]);
  }
  const std::int64_t threads = at::get_num_threads();
  while (static_cast<std::int64_t>(scratch_.size()) < threads) scratch_.push_back(make_scratch());
  const std::int64_t rows = std::clamp((count + threads - 1) / threads, kLeastRowBlock, kRowBlock);
  std::mutex guard;
  at::parallel_for(0, (count + rows - 1) / rows, 1, [&](std::int64_t first, std::int64_t last) {
    Scratch& scratch = scratch_[at::get_thread_num()];
    double largest = 0.0;
    for (std::int64_t group = first; group < last; ++group) {
      const std::int64_t begin = group * rows;
      const std::int64_t end = std::min(count, begin + rows);
      largest = std::max(largest, scan_group(changed, begin, end, scratch));
    }
    const std::lock_guard lock(guard);
    stats_.largest_rounding = std::max(stats_.largest_rounding, largest);
  });
  for (std::int64_t r = 0; r < count; ++r) scales_[rows_changed[r]] = changed.scales[r];
  stats_.scanned += count;
}

// Rows of slots that are not pending, then the pending ones among themselves: a changed row owns
// its pairs with all unchanged rows and with those that changed before it.
double NearestIndexCpu::scan_group(const Changed& changed, std::int64_t begin, std::int64_t end,
                                   Scratch& scratch) {
  const auto group = changed.rows.subspan(begin, end - begin);
  const at::Tensor left = gather(group);
  std::vector<Best> best(end - begin);
  for (std::int64_t column = 0; column < config_.slots; column += kColumnBlock) {
    const std::int64_t columns = std::min(kColumnBlock, config_.slots - column);
    const Columns part{float_rows(column, columns, scratch), scales_.data() + column,
                       inverse_weights_.data() + column, all_slots_.data() + column, columns};
    offer_block(left, group, part, best, columns, scratch);
  }
  for (std::int64_t column = 0; column < end; column += kColumnBlock) {
    const std::int64_t columns = std::min(kColumnBlock, end - column);
    const Columns part{gather(changed.rows.subspan(column, columns)),
                       changed.scales.data() + column, changed.inverse_weights.data() + column,
                       changed.slots.data() + column, columns};
    offer_block(left, group, part, best, begin - column, scratch);
  }
  double largest = 0.0;
  for (std::int64_t r = begin; r < end; ++r) {
    largest = std::max(largest, refine(changed.rows[r], best[r - begin]));
  }
  return largest;
}

NearestIndexCpu::Scratch NearestIndexCpu::make_scratch() const {
  Scratch made;
  made.products = at::empty({kRowBlock * kColumnBlock}, at::kFloat);
  if (config_.type != FeatureType::float32) {
    made.converted = at::empty({kColumnBlock, config_.dim}, at::kFloat);
  }
  return made;
}

at::Tensor NearestIndexCpu::gather(std::span<const std::int64_t> slots) const {
  return rows_.index_select(0, integers_tensor(slots)).to(at::kFloat);
}

at::Tensor NearestIndexCpu::float_rows(std::int64_t begin, std::int64_t count,
                                       Scratch& scratch) const {
  const at::Tensor part = rows_.narrow(0, begin, count);
  if (config_.type == FeatureType::float32) return part;
  at::Tensor converted = scratch.converted.narrow(0, 0, count);
  return converted.copy_(part);
}

void NearestIndexCpu::offer_block(const at::Tensor& left, std::span<const std::int64_t> slots,
                                  const Columns& part, std::vector<Best>& best,
                                  std::int64_t first_row_columns, Scratch& scratch) const {
  const auto rows = static_cast<std::int64_t>(best.size());
  at::Tensor block = scratch.products.narrow(0, 0, rows * part.count).view({rows, part.count});
  at::mm_out(block, left, part.rows.t());
  for (std::int64_t r = 0; r < rows; ++r) {
    const std::int64_t columns = std::clamp<std::int64_t>(first_row_columns + r, 0, part.count);
    float* products = data<float>(block) + r * part.count;
    if (!config_.merge) {
      offer(products, part.scales, part, columns, best[r]);
      continue;
    }
    const MergeRow row{static_cast<float>(inverse_norms_[slots[r]]), inverse_weights_[slots[r]],
                       static_cast<float>(1.0 - stats_.allowed_rounding),
                       config_.merge->inverse_reach(), config_.merge->quarters};
    merge_values(row, part.scales, part.inverse_weights, columns, products);
    offer(products, ones_.data(), part, columns, best[r]);
  }
}

void NearestIndexCpu::offer(const float* products, const float* scales, const Columns& part,
                            std::int64_t columns, Best& best) const {
  float maxima[kColumnBlock / kMaximaBlock];
  const std::int64_t blocks = columns / kMaximaBlock;
  block_maxima(products, scales, blocks, maxima);
  const std::int64_t k = config_.neighbours;
  const auto floor = [&] {
    return best.count < k ? -std::numeric_limits<float>::infinity() : best.found[k - 1].similarity;
  };
  const auto look = [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t c = begin; c < end; ++c) {
      const float similarity = products[c] * scales[c];
      if (!(similarity > floor())) continue;
      std::int64_t place = best.count < k ? best.count++ : k - 1;
      for (; place > 0 && best.found[place - 1].similarity < similarity; --place) {
        best.found[place] = best.found[place - 1];
      }
      best.found[place] = {similarity, part.slots[c]};
    }
  };
  for (std::int64_t block = 0; block < blocks; ++block) {
    if (maxima[block] > floor()) look(block * kMaximaBlock, (block + 1) * kMaximaBlock);
  }
  look(blocks * kMaximaBlock, columns);
}

// The float32 product says who the nearest are, float64 how near. Everyone else is at least as far
// as the last of them seemed, less what the product may have been wrong by.
double NearestIndexCpu::refine(std::int64_t slot, const Best& best) {
  std::vector<float> room(2 * config_.dim);
  const float* values = row(slot, room.data());
  double largest = 0.0;
  Nearest nearest[kMaxNeighbours];
  for (std::int64_t e = 0; e < best.count; ++e) {
    const std::int64_t other = best.found[e].slot;
    nearest[e] = {key_of(slot, other, values, room.data() + config_.dim), other};
    const double product_distance = seemed(slot, best.found[e]);
    const double distance = nearest[e].key / kKeysPerUnit;
    largest = std::max(largest, std::abs(product_distance - distance));
  }
  keep(slot, {nearest, static_cast<std::size_t>(best.count)});
  DistanceKey& bound = data<DistanceKey>(lists_.bound_key)[slot];
  data<std::int64_t>(lists_.bound_change)[slot] = 0;
  if (best.count < config_.neighbours) {
    bound = kNoKey;
  } else if (largest > stats_.allowed_rounding) {
    bound = 0;  // A product this wrong proves nothing: the row will be looked at in float64.
  } else {
    const Candidate& last = best.found[best.count - 1];
    bound = config_.merge ? cost_at_most(-last.similarity)
                          : key_at_most(seemed(slot, last) - stats_.allowed_rounding);
  }
  return largest;
}

double NearestIndexCpu::seemed(std::int64_t slot, const Candidate& other) const {
  if (!config_.merge) return 1.0 - other.similarity * inverse_norms_[slot];
  const double factor = merge_factor(weights_[slot], weights_[other.slot], config_.merge->quarters);
  return stats_.allowed_rounding +
         uncounted_distance(-other.similarity / factor, config_.merge->reach);
}

void NearestIndexCpu::rescan(std::int64_t slot) {
  ++stats_.rescanned;
  // Here keys are costs.
  const auto nearer = [this](const Nearest& a, const Nearest& b) {
    return a.key != b.key ? a.key < b.key : changed_[a.slot] < changed_[b.slot];
  };
  const auto k = static_cast<std::size_t>(config_.neighbours);
  const auto offer_nearest = [&](std::vector<Nearest>& list, const Nearest& candidate) {
    if (list.size() == k && !nearer(candidate, list.back())) return;
    if (list.size() == k) list.pop_back();
    list.insert(std::upper_bound(list.begin(), list.end(), candidate, nearer), candidate);
  };
  std::vector<float> own(config_.dim);
  const float* values = row(slot, own.data());
  std::mutex guard;
  std::vector<Nearest> best;
  bool more = false;
  at::parallel_for(0, config_.slots, grain(config_.dim), [&](std::int64_t begin, std::int64_t end) {
    std::vector<float> room(config_.dim);
    std::vector<Nearest> best_here;
    std::size_t owned = 0;
    for (std::int64_t other = begin; other < end; ++other) {
      if (!owns(slot, other)) continue;
      ++owned;
      const DistanceKey distance = key_of(slot, other, values, room.data());
      offer_nearest(best_here, {cost(distance, slot, other), other});
    }
    const std::lock_guard lock(guard);
    more = more || owned > best_here.size() || best.size() + best_here.size() > k;
    for (const Nearest& candidate : best_here) offer_nearest(best, candidate);
  });
  data<DistanceKey>(lists_.bound_key)[slot] = more ? best.back().key : kNoKey;
  data<std::int64_t>(lists_.bound_change)[slot] =
      more ? static_cast<std::int64_t>(changed_[best.back().slot]) : 0;
  if (config_.merge) {
    std::vector<float> room(config_.dim);
    for (Nearest& known : best) known.key = key_of(slot, known.slot, values, room.data());
  }
  keep(slot, best);
}

void NearestIndexCpu::keep(std::int64_t slot, std::span<Nearest> nearest) {
  std::sort(nearest.begin(), nearest.end(), [this](const Nearest& a, const Nearest& b) {
    return a.key != b.key ? a.key < b.key : changed_[a.slot] < changed_[b.slot];
  });
  const std::int64_t k = config_.neighbours;
  auto* slots = data<std::int32_t>(lists_.slots) + slot * k;
  auto* keys = data<DistanceKey>(lists_.keys) + slot * k;
  for (std::int64_t e = 0; e < k; ++e) {
    const bool known = e < static_cast<std::int64_t>(nearest.size());
    slots[e] = known ? static_cast<std::int32_t>(nearest[e].slot) : -1;
    keys[e] = known ? nearest[e].key : kNoKey;
  }
}

}  // namespace riffle

#include "riffle/curate/selector.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <utility>

#include <torch/types.h>

#include "riffle/base/error.h"
#include "riffle/base/text.h"
#include "riffle/tensors/unit_length.h"

namespace riffle {
namespace {

// What a float32 product of unit vectors may be off by, and more.
constexpr double kProductRounding = 1e-5;
// Pairs of rows that are looked at at once, so that a list of the near ones stays small.
constexpr std::int64_t kMostPairs = std::int64_t{1} << 22;

// As the buffer's policy merges, but for weights without a limit: a selection is to be a summary,
// in which old pictures need not make room.
NearestIndexConfig merging_index(const SelectorConfig& config) {
  NearestIndexConfig index;
  index.slots = config.keep + config.batch;
  index.dim = config.dim;
  index.device = config.device;
  index.merge = MergeRule{.reach = BufferConfig().merge_reach};
  return index;
}

}  // namespace

Selector::Selector(const SelectorConfig& config)
    : config_(config), index_(NearestIndex::create(merging_index(config))) {
  const std::int64_t slots = index_->config().slots;
  kept_.resize(static_cast<std::size_t>(slots));
  for (std::int64_t slot = slots; slot-- > 0;) free_.push_back(slot);
}

// The float32 product says who may be near, float64 how near.
std::vector<Selector::Near> Selector::nearest_held(const at::Tensor& rows) const {
  std::vector<Near> nearest(static_cast<std::size_t>(rows.size(0)));
  if (index_->size() == 0) return nearest;
  // Of unit length. A large selection has mostly slots that were never used, at first.
  const at::Tensor held = index_->rows().narrow(0, 0, used_).to(at::kFloat);
  const at::Tensor similarities = at::mm(unit_length(rows), held.t());
  const double least = 1.0 - config_.near - kProductRounding;
  const std::int64_t at_once = std::max<std::int64_t>(1, kMostPairs / held.size(0));
  for (std::int64_t first = 0; first < rows.size(0); first += at_once) {
    const std::int64_t count = std::min(at_once, rows.size(0) - first);
    const at::Tensor pairs = at::nonzero(similarities.narrow(0, first, count) >= least).cpu();
    const auto pair = pairs.accessor<std::int64_t, 2>();
    std::vector<std::int64_t> slots;
    for (std::int64_t p = 0; p < pairs.size(0); ++p) {
      // A slot that holds no picture still has the row of the last that it held.
      if (index_->contains(pair[p][1])) slots.push_back(pair[p][1]);
      const bool ends = p + 1 == pairs.size(0) || pair[p + 1][0] != pair[p][0];
      if (!ends || slots.empty()) continue;
      const std::int64_t row = first + pair[p][0];
      const at::Tensor which = integers_tensor(slots).to(held.device());
      const at::Tensor exact =
          (1 - at::mv(unit_length(held.index_select(0, which).to(at::kDouble)),
                      unit_length(rows.narrow(0, row, 1).to(at::kDouble)).squeeze(0)))
              .cpu();
      const auto* distances = exact.const_data_ptr<double>();
      const auto best = std::min_element(distances, distances + slots.size()) - distances;
      nearest[static_cast<std::size_t>(row)] = {slots[static_cast<std::size_t>(best)],
                                                distances[best]};
      slots.clear();
    }
  }
  return nearest;
}

std::vector<Selector::Origin> Selector::find_repeats(const at::Tensor& features) const {
  const at::Tensor rows = features.to(config_.device, at::kFloat);
  const auto held = nearest_held(rows);
  const at::Tensor exact = unit_length(rows.to(at::kDouble));
  const at::Tensor among = (1 - at::mm(exact, exact.t())).cpu();
  const auto distance = among.accessor<double, 2>();
  std::vector<Origin> origins(held.size());
  for (std::size_t i = 0; i < held.size(); ++i) {
    double best = held[i].distance;
    if (held[i].slot >= 0 && best <= config_.near) origins[i] = {false, held[i].slot, 0};
    for (std::size_t j = 0; j < i; ++j) {
      const double here = distance[static_cast<std::int64_t>(i)][static_cast<std::int64_t>(j)];
      if (!origins[j].is_new || here > config_.near || here >= best) continue;
      best = here;
      origins[i] = {false, -1, j};
    }
  }
  return origins;
}

// Returns the slots by place in the batch, -1 for repeats.
std::vector<std::int64_t> Selector::enter(std::span<const Sample> samples,
                                          const at::Tensor& features,
                                          std::span<const Origin> origins) {
  std::vector<std::int64_t> slots, rows, by_place(samples.size(), -1);
  std::vector<std::uint64_t> ages;
  for (std::size_t i = 0; i < samples.size(); ++i) {
    if (!origins[i].is_new) continue;
    by_place[i] = free_[free_.size() - 1 - slots.size()];
    used_ = std::max(used_, by_place[i] + 1);
    slots.push_back(by_place[i]);
    rows.push_back(static_cast<std::int64_t>(i));
    ages.push_back(samples[i].index);
  }
  if (slots.empty()) return by_place;
  index_->weigh(slots, std::vector<double>(slots.size(), 1.0));
  index_->set(slots, ages, features.index_select(0, integers_tensor(rows).to(features.device())));
  index_->check();
  free_.resize(free_.size() - slots.size());
  for (std::size_t i = 0; i < samples.size(); ++i) {
    if (by_place[i] < 0) continue;
    const Sample& sample = samples[i];
    kept_[static_cast<std::size_t>(by_place[i])] = {
        .index = sample.index,
        .clip = sample.clip,
        .label = sample.label,
        .key = sample.key,
        .time = sample.time,
        .shown_at = sample.seconds < 0 ? -1 : std::llround(1000 * sample.seconds),
        .file = {}};
  }
  return by_place;
}

void Selector::count_repeats(std::span<const Sample> samples, std::span<const Origin> origins,
                             std::span<const std::int64_t> slots, Change& change) {
  std::map<std::int64_t, double> added;
  for (std::size_t i = 0; i < samples.size(); ++i) {
    if (origins[i].is_new) continue;
    const std::int64_t of = origins[i].slot >= 0 ? origins[i].slot : slots[origins[i].place];
    Kept& kept = kept_[static_cast<std::size_t>(of)];
    ++kept.count;
    ++added[of];
    change.repeats.push_back({samples[i].index, samples[i].key, kept.index, kept.count});
  }
  std::vector<std::int64_t> risen;
  std::vector<double> weights;
  for (const auto& [slot, weight] : added) {
    risen.push_back(slot);
    weights.push_back(weight);
  }
  if (!risen.empty()) index_->reinforce(risen, weights);
}

void Selector::merge_down(Change& change) {
  const std::int64_t excess = size() - config_.keep;
  if (excess <= 0) return;
  for (const Removal& removal : index_->take_most_redundant(excess)) {
    const Kept& leaver = kept_[static_cast<std::size_t>(removal.slot)];
    Kept& stayer = kept_[static_cast<std::size_t>(removal.into)];
    stayer.count += leaver.count;
    change.repeats.push_back({leaver.index, leaver.key, stayer.index, stayer.count});
    change.left.push_back(removal.slot);
    free_.push_back(removal.slot);
  }
}

Selector::Change Selector::offer(std::span<const Sample> samples, const at::Tensor& given) {
  const at::Tensor features = with_direction(given);
  Change change;
  std::vector<Origin> origins(samples.size());
  if (config_.near >= 0) origins = find_repeats(features);
  const auto slots = enter(samples, features, origins);
  count_repeats(samples, origins, slots, change);
  merge_down(change);
  for (std::size_t i = 0; i < samples.size(); ++i) {
    if (slots[i] < 0) continue;
    const bool left = std::erase(change.left, slots[i]) > 0;
    if (!left) change.entered.emplace_back(slots[i], i);
  }
  return change;
}

void Selector::refresh(std::span<const std::int64_t> slots, const at::Tensor& features) {
  std::vector<std::uint64_t> ages;
  for (const std::int64_t slot : slots) ages.push_back(kept(slot).index);
  index_->set(slots, ages, with_direction(features));
  index_->check();
}

std::vector<std::int64_t> Selector::slots() const {
  std::vector<std::int64_t> held;
  for (std::int64_t slot = 0; slot < std::ssize(kept_); ++slot) {
    if (index_->contains(slot)) held.push_back(slot);
  }
  std::ranges::sort(held, {}, [this](std::int64_t slot) { return kept(slot).index; });
  return held;
}

std::vector<double> Selector::nearest() {
  const at::Tensor distances = index_->nearest_distances();
  const auto* first = distances.const_data_ptr<float>();
  return {first, first + distances.numel()};
}

NamedTensors Selector::save() {
  std::vector<std::int64_t> indices, clips, counts, times, shown_at;
  std::vector<std::string> labels, keys, files;
  const auto held = slots();
  for (const std::int64_t slot : held) {
    indices.push_back(static_cast<std::int64_t>(kept(slot).index));
    clips.push_back(kept(slot).clip);
    counts.push_back(kept(slot).count);
    times.push_back(kept(slot).time);
    shown_at.push_back(kept(slot).shown_at);
    labels.push_back(kept(slot).label);
    keys.push_back(kept(slot).key);
    files.push_back(kept(slot).file);
  }
  NamedTensors state = {{"slots", integers_tensor(held)},       {"free", integers_tensor(free_)},
                        {"indices", integers_tensor(indices)},  {"clips", integers_tensor(clips)},
                        {"counts", integers_tensor(counts)},    {"times", integers_tensor(times)},
                        {"shown_at", integers_tensor(shown_at)}};
  add_texts(state, "labels", labels);
  add_texts(state, "keys", keys);
  add_texts(state, "files", files);
  add_part(state, "index.", index_->save());
  return state;
}

void Selector::restore(const NamedTensors& state) {
  const auto held = find_integers(state, "slots");
  const std::int64_t count = std::ssize(held);
  const auto indices = find_integers(state, "indices", count);
  const auto clips = find_integers(state, "clips", count);
  const auto counts = find_integers(state, "counts", count);
  const auto times = find_integers(state, "times", count);
  const auto shown_at = find_integers(state, "shown_at", count);
  const auto labels = find_texts(state, "labels", count);
  const auto keys = find_texts(state, "keys", count);
  const auto files = find_texts(state, "files", count);
  if (count > config_.keep) {
    throw Error(cat("saved selection: ", count, " pictures where ", config_.keep, " are kept"));
  }
  const auto free = find_integers(state, "free", std::ssize(kept_) - count);
  std::vector<bool> named(kept_.size(), false);
  for (const auto& part : {held, free}) {
    for (const std::int64_t slot : part) {
      if (slot < 0 || slot >= std::ssize(kept_) || named[static_cast<std::size_t>(slot)]) {
        throw Error(cat("saved selection: slot ", slot, " is out of range or named twice"));
      }
      named[static_cast<std::size_t>(slot)] = true;
    }
  }
  std::set<std::int64_t> seen;
  for (std::size_t i = 0; i < held.size(); ++i) {
    if (indices[i] < 0 || counts[i] < 1 || !seen.insert(indices[i]).second) {
      throw Error(cat("saved selection: picture ", indices[i], " stands for ", counts[i],
                      " or is there twice"));
    }
  }
  index_->restore(find_part(state, "index."));
  used_ = held.empty() ? 0 : std::ranges::max(held) + 1;
  for (std::size_t i = 0; i < held.size(); ++i) {
    if (!index_->contains(held[i])) {
      throw Error(cat("saved selection: the picture in slot ", held[i], " has no feature"));
    }
    kept_[static_cast<std::size_t>(held[i])] = {static_cast<std::uint64_t>(indices[i]),
                                                clips[i],
                                                labels[i],
                                                keys[i],
                                                times[i],
                                                shown_at[i],
                                                counts[i],
                                                files[i]};
  }
  if (index_->size() != count) throw Error("saved selection: features without a picture");
  free_ = free;
}

}  // namespace riffle

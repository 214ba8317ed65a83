#include "riffle/buffer/replay_buffer.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <stdexcept>
#include <unordered_map>

#include <ATen/ATen.h>

#include "riffle/base/error.h"
#include "riffle/base/log.h"
#include "riffle/base/text.h"
#include "riffle/buffer/divided_store.h"
#include "riffle/buffer/memory_plan.h"
#include "riffle/buffer/weighted_draw.h"

namespace riffle {
namespace {

constexpr std::int64_t kFree = -1;

[[noreturn]] void misused(const std::string& message) {
  throw std::logic_error("replay buffer: " + message);
}

// n distinct places of [0, size), uniformly: the first n steps of a Fisher-Yates shuffle of which
// only the places touched are kept.
std::vector<std::int64_t> distinct_places(std::int64_t n, std::int64_t size, Random& random) {
  std::unordered_map<std::int64_t, std::int64_t> moved;
  moved.reserve(static_cast<std::size_t>(n));
  const auto at = [&moved](std::int64_t place) {
    const auto found = moved.find(place);
    return found == moved.end() ? place : found->second;
  };
  std::vector<std::int64_t> places;
  places.reserve(static_cast<std::size_t>(n));
  for (std::int64_t i = 0; i < n; ++i) {
    const auto j =
        i + static_cast<std::int64_t>(random.below(static_cast<std::uint64_t>(size - i)));
    places.push_back(at(j));
    moved[j] = at(i);
  }
  return places;
}

}  // namespace

struct ReplayBuffer::State {
  BufferConfig config;
  std::int64_t batch;
  int picture_size;
  std::int64_t feature_dim;
  std::int64_t capacity;
  Ranks* ranks;
  std::unique_ptr<Store> store;
  std::unique_ptr<Policy> policy;

  std::vector<SlotInfo> info;       // by slot
  std::vector<std::int64_t> place;  // by slot: where it stands in `live`, or kFree
  std::vector<Slot> live;
  std::vector<Slot> free;  // the next one to be used is the last
  std::int64_t used = 0;   // slots from this one on never held a sample
  std::uint64_t arrivals = 0;
  bool holds_newest = false;
  std::vector<Slot> newest;  // of the last batch inserted, in order; with holds_newest alone
  std::unordered_map<std::int64_t, std::int64_t> clips;  // samples held of each clip
  std::optional<WeightedDraw> weighted_draw;             // made when a draw wants it
  std::vector<Slot> changed;                             // since take_changed(), each once
  std::vector<bool> is_changed;                          // by slot

  std::int64_t slots() const { return capacity + batch; }

  BufferShape shape() const {
    return {number_of_policy(config.policy),
            static_cast<std::int64_t>(config.storage),
            capacity,
            batch,
            picture_size,
            config.pictures_a_sample()};
  }

  // The partners of all slots stand in the store after their own pictures, each with the rank that
  // has the slot.
  std::int64_t first_partner() const {
    return DividedStore::slots_per_rank(slots(), *ranks) * ranks->size();
  }
  std::vector<std::int64_t> partner_rows(std::span<const Slot> of) const {
    std::vector<std::int64_t> rows(of.begin(), of.end());
    for (auto& row : rows) row += first_partner();
    return rows;
  }

  void occupy(Slot slot, SlotInfo&& sample) {
    place[static_cast<std::size_t>(slot)] = static_cast<std::int64_t>(live.size());
    live.push_back(slot);
    used = std::max(used, slot + 1);
    if (sample.clip != kNoClip) ++clips[sample.clip];
    if (!is_changed[static_cast<std::size_t>(slot)]) changed.push_back(slot);
    is_changed[static_cast<std::size_t>(slot)] = true;
    info[static_cast<std::size_t>(slot)] = std::move(sample);
  }

  bool holds(Slot slot) const {
    return slot >= 0 && slot < slots() && place[static_cast<std::size_t>(slot)] != kFree;
  }

  // By slot, how likely it is to be drawn; 0 where nothing is held.
  std::vector<double> draw_weights() const {
    std::vector<double> weights(static_cast<std::size_t>(slots()), 0.0);
    const auto of_policy = policy->weights();
    for (const Slot slot : live) {
      const auto at = static_cast<std::size_t>(slot);
      weights[at] = std::pow(of_policy[at], config.draw_exponent);
    }
    return weights;
  }

  void make_room() {
    const auto size = static_cast<std::int64_t>(live.size());
    if (size <= capacity) return;
    for (const Slot slot : policy->evict(size - capacity)) release(slot);
  }

  // n distinct samples, in the order drawn.
  std::vector<Slot> pick(std::int64_t n, Random& random) {
    if (config.draw == DrawRule::weight && !policy->weights().empty()) {
      if (!weighted_draw) weighted_draw.emplace(draw_weights());
      return weighted_draw->draw(n, random);
    }
    std::vector<Slot> slots;
    for (const auto at : distinct_places(n, std::ssize(live), random)) {
      slots.push_back(live[static_cast<std::size_t>(at)]);
    }
    return slots;
  }

  Draw drawn(std::vector<Slot> slots) {
    Draw draw{.slots = std::move(slots), .arrivals = {}};
    for (const Slot slot : draw.slots) {
      auto& sample = info[static_cast<std::size_t>(slot)];
      ++sample.draws;
      draw.arrivals.push_back(sample.arrival);
    }
    policy->drawn(draw.slots);
    return draw;
  }

  void require_used(std::span<const Slot> asked) const {
    for (const Slot slot : asked) {
      if (slot < 0 || slot >= used) misused(cat("slot ", slot, " never held a sample"));
    }
  }

  void release(Slot slot) {
    if (!holds(slot)) misused(cat("slot ", slot, " was evicted but holds no sample"));
    const auto hole = place[static_cast<std::size_t>(slot)];
    const auto last = live.back();
    live[static_cast<std::size_t>(hole)] = last;
    place[static_cast<std::size_t>(last)] = hole;
    live.pop_back();
    place[static_cast<std::size_t>(slot)] = kFree;
    free.push_back(slot);
    const auto clip = clips.find(info[static_cast<std::size_t>(slot)].clip);
    if (clip != clips.end() && --clip->second == 0) clips.erase(clip);
  }
};

ReplayBuffer::ReplayBuffer(const BufferConfig& config, std::int64_t batch, int picture_size,
                           std::int64_t feature_dim, std::uint64_t seed, at::Device device,
                           Ranks& ranks)
    : state_(std::make_unique<State>()) {
  config.validate();
  auto& s = *state_;
  s.config = config;
  auto available = available_memory(device);
  available.host /= static_cast<std::uint64_t>(ranks.local_size());
  s.config.memory = choose_memory(config, batch, picture_size, feature_dim, device, available);
  // Pictures travel between ranks from where they are kept: in memory of one kind.
  if (ranks.any(s.config.memory == BufferMemory::host)) s.config.memory = BufferMemory::host;
  const auto plan = plan_memory(s.config, batch, picture_size, feature_dim, device);
  require_fits(plan.share_of(ranks), available);
  const PolicyKind& kind = policy_kind(config.policy);
  // With features on arrival the new batch has them too, which is enough.
  const bool late = kind.wants_features && config.features == FeatureTime::draw;
  if (late && plan.capacity < 2 * batch) {
    log_warning(cat("a buffer of ", plan.capacity, " samples with policy ", kind.name,
                    " holds fewer than two batches of ", batch,
                    ", and buffer.features=draw leaves the new one without features: the oldest "
                    "will leave, as with fifo"));
  }

  s.batch = batch;
  s.picture_size = picture_size;
  s.feature_dim = feature_dim;
  s.capacity = plan.capacity;
  s.ranks = &ranks;
  const std::int64_t pictures = s.config.pairs ? 2 * s.first_partner() : s.slots();
  if (ranks.alone()) {
    s.store = make_store(s.config, pictures, picture_size, device);
  } else {
    s.store = std::make_unique<DividedStore>(s.config, pictures, picture_size, device, ranks);
  }
  s.policy = kind.make({s.config, s.slots(), feature_dim, seed, device});
  s.info.resize(static_cast<std::size_t>(s.slots()));
  s.place.assign(static_cast<std::size_t>(s.slots()), kFree);
  s.is_changed.assign(static_cast<std::size_t>(s.slots()), false);
  s.live.reserve(static_cast<std::size_t>(s.slots()));
  for (Slot slot = s.slots(); slot-- > 0;) s.free.push_back(slot);
}

ReplayBuffer::~ReplayBuffer() = default;

void ReplayBuffer::hold_newest() {
  if (state_->arrivals > 0) misused("samples were inserted before hold_newest()");
  state_->holds_newest = true;
}

void ReplayBuffer::insert(std::span<const Sample> batch, const at::Tensor& features) {
  const auto side = state_->picture_size;
  const at::Tensor pictures =
      at::empty({static_cast<std::int64_t>(batch.size()), side, side, 3}, at::kByte);
  auto* to = pictures.mutable_data_ptr<std::uint8_t>();
  for (const auto& sample : batch) {
    const auto& picture = sample.picture;
    if (picture.width != side || picture.height != side) {
      misused(cat("sample ", sample.index, " is ", picture.width, " x ", picture.height,
                  " px, not ", side, " x ", side));
    }
    to = std::ranges::copy(picture.rgb, to).out;
  }
  insert(batch, pictures, [&features](const Pictures&) { return features; });
}

void ReplayBuffer::insert(std::span<const Sample> batch, const at::Tensor& pictures,
                          const FeaturesOf& features_of, std::span<const std::int64_t> partners) {
  auto& s = *state_;
  const auto count = static_cast<std::int64_t>(batch.size());
  if (count > s.batch) misused(cat("a batch of ", count, " samples; at most ", s.batch, " fit"));
  const auto here = s.ranks->part_of(count);
  if (pictures.sizes() != at::IntArrayRef({here, s.picture_size, s.picture_size, 3})) {
    misused(cat("pictures are ", pictures.sizes(), " for ", count, " samples"));
  }
  if (!partners.empty() && (!s.config.pairs || partners.size() != batch.size())) {
    misused(cat(partners.size(), " partners for ", count, " samples",
                s.config.pairs ? "" : " of a buffer without pairs"));
  }
  if (batch.empty()) return;

  if (s.holds_newest) s.make_room();
  // Store and policy may refuse the batch; only after them does anything count as changed.
  const std::vector<Slot> slots(s.free.rbegin(), s.free.rbegin() + count);
  s.store->put(slots, pictures);
  if (s.config.pairs) {
    std::vector<Slot> of_partners = slots;
    for (std::size_t i = 0; i < partners.size(); ++i) {
      of_partners[i] = slots.at(static_cast<std::size_t>(partners[i]));
    }
    s.store->copy(of_partners, s.partner_rows(slots));
  }
  const at::Tensor features = features_of(s.store->get(slots));
  if (features.defined() && (features.dim() != 2 || features.size(0) != count)) {
    misused(cat("features are not one row for each of ", count, " samples"));
  }
  s.policy->inserted(slots, features);
  s.free.resize(s.free.size() - slots.size());
  for (std::size_t i = 0; i < batch.size(); ++i) {
    s.occupy(slots[i],
             {s.arrivals++, batch[i].index, batch[i].clip, 0, batch[i].label, batch[i].time,
              batch[i].key.size() <= kMostKeyBytes ? batch[i].key : std::string()});
  }
  if (s.holds_newest) {
    s.newest = slots;
  } else {
    s.make_room();
  }
  s.weighted_draw.reset();
}

Draw ReplayBuffer::sample(std::int64_t n, Random& random) {
  auto& s = *state_;
  if (n < 0 || n > size()) misused(cat("cannot draw ", n, " of ", size(), " samples"));
  if (!s.config.is_none()) return s.drawn(s.pick(n, random));
  auto newest = s.live;
  std::ranges::sort(newest, {}, [&](Slot slot) { return info(slot).arrival; });
  return s.drawn({newest.end() - n, newest.end()});
}

Draw ReplayBuffer::sample_with_fresh(std::int64_t n, std::int64_t fresh, Random& random) {
  auto& s = *state_;
  const std::int64_t newest = std::ssize(s.newest);
  if (fresh < 0 || fresh > newest || n - fresh < 0 || n - fresh > size() - newest) {
    misused(cat("cannot draw ", fresh, " of ", newest, " new samples and ", n - fresh, " of ",
                size() - newest, " others"));
  }
  std::vector<Slot> slots;
  for (const auto at : distinct_places(fresh, newest, random)) {
    slots.push_back(s.newest[static_cast<std::size_t>(at)]);
  }
  // Left out of a random order, the newest leave the others in a random order.
  const std::uint64_t first_new = s.arrivals - static_cast<std::uint64_t>(newest);
  for (const Slot slot : s.pick(n - fresh + newest, random)) {
    if (std::ssize(slots) < n && info(slot).arrival < first_new) slots.push_back(slot);
  }
  return s.drawn(std::move(slots));
}

void ReplayBuffer::track(const Draw& draw, const at::Tensor& features) {
  auto& s = *state_;
  const auto count = static_cast<std::int64_t>(draw.slots.size());
  if (draw.arrivals.size() != draw.slots.size()) misused("a draw of unequal lengths");
  if (features.dim() != 2 || features.size(0) != count) {
    misused(cat("features are not one row for each of ", count, " samples drawn"));
  }
  std::vector<Slot> present;
  std::vector<std::int64_t> rows;
  for (std::size_t i = 0; i < draw.slots.size(); ++i) {
    const Slot slot = draw.slots[i];
    if (!s.holds(slot) || info(slot).arrival != draw.arrivals[i]) continue;
    present.push_back(slot);
    rows.push_back(static_cast<std::int64_t>(i));
  }
  if (present.empty()) return;
  const bool all = present.size() == draw.slots.size();
  s.policy->tracked(
      present,
      all ? features : features.index_select(0, integers_tensor(rows).to(features.device())));
}

Pictures ReplayBuffer::pictures(std::span<const Slot> slots) const {
  const auto& s = *state_;
  s.require_used(slots);
  if (!s.config.pairs) return s.store->get(slots);
  // Each rank's part with its partners.
  const auto part = static_cast<std::size_t>(s.ranks->part_of(std::ssize(slots)));
  std::vector<std::int64_t> rows;
  for (std::size_t begin = 0; begin < slots.size(); begin += part) {
    const auto of_rank = slots.subspan(begin, part);
    const auto partners = s.partner_rows(of_rank);
    rows.insert(rows.end(), of_rank.begin(), of_rank.end());
    rows.insert(rows.end(), partners.begin(), partners.end());
  }
  Pictures pictures = s.store->get(rows);
  const auto second = pictures.indices.begin() + static_cast<std::ptrdiff_t>(part);
  pictures.second.assign(second, pictures.indices.end());
  pictures.indices.erase(second, pictures.indices.end());
  return pictures;
}

std::int64_t ReplayBuffer::size() const { return static_cast<std::int64_t>(state_->live.size()); }
std::int64_t ReplayBuffer::capacity() const { return state_->capacity; }
std::int64_t ReplayBuffer::batch() const { return state_->batch; }
int ReplayBuffer::picture_size() const { return state_->picture_size; }
at::Device ReplayBuffer::picture_device() const { return state_->store->device(); }
std::int64_t ReplayBuffer::slots() const { return state_->slots(); }
bool ReplayBuffer::holds(Slot slot) const { return state_->holds(slot); }
bool ReplayBuffer::is_here(Slot slot) const {
  return DividedStore::owner(slot, *state_->ranks) == state_->ranks->rank();
}
const std::vector<Slot>& ReplayBuffer::live() const { return state_->live; }

const SlotInfo& ReplayBuffer::info(Slot slot) const {
  if (!state_->holds(slot)) misused(cat("slot ", slot, " holds no sample"));
  return state_->info[static_cast<std::size_t>(slot)];
}

std::int64_t ReplayBuffer::distinct_clips() const {
  return static_cast<std::int64_t>(state_->clips.size());
}

BufferStats ReplayBuffer::stats(bool nearest) const {
  const auto& s = *state_;
  auto policy = s.policy->stats(nearest);
  BufferStats stats;
  stats.size = size();
  stats.capacity = s.capacity;
  stats.distinct_clips = distinct_clips();
  stats.evictions = std::move(policy.evictions);
  stats.nearest = std::move(policy.nearest);
  if (s.live.empty()) return stats;
  double ages = 0;
  double draws = 0;
  for (const Slot slot : s.live) {
    const auto age = static_cast<std::int64_t>(s.arrivals - 1 - info(slot).arrival);
    ages += static_cast<double>(age);
    stats.max_age = std::max(stats.max_age, age);
    draws += static_cast<double>(info(slot).draws);
  }
  const auto count = static_cast<double>(size());
  stats.mean_age = ages / count;
  stats.mean_draws = draws / count;
  stats.tracked_share = static_cast<double>(policy.with_feature) / count;
  return stats;
}

std::map<std::string, std::int64_t> ReplayBuffer::label_counts() const {
  std::map<std::string, std::int64_t> counts;
  for (const Slot slot : state_->live) ++counts[info(slot).label];
  return counts;
}

NamedTensors ReplayBuffer::save() const {
  const auto& s = *state_;
  BufferState state{.shape = s.shape(),
                    .arrivals = s.arrivals,
                    .used = s.used,
                    .live = s.live,
                    .free = s.free,
                    .newest = s.newest,
                    .policy = s.policy->save()};
  state.samples.reserve(s.live.size());
  for (const Slot slot : s.live) state.samples.push_back(info(slot));
  return state.tensors();
}

void ReplayBuffer::restore(const NamedTensors& tensors) {
  auto& s = *state_;
  BufferState state = BufferState::read(tensors);
  require_same_shape(state.shape, s.shape());
  if (!s.holds_newest && std::ssize(state.live) > s.capacity) {
    throw Error(cat("saved state: ", state.live.size(), " samples in a buffer of ", s.capacity));
  }
  s.policy->restore(state.policy);

  s.live.clear();
  s.clips.clear();
  s.place.assign(s.place.size(), kFree);
  for (std::size_t i = 0; i < state.live.size(); ++i) {
    s.occupy(state.live[i], std::move(state.samples[i]));
  }
  s.weighted_draw.reset();
  s.free = std::move(state.free);
  s.used = state.used;
  s.arrivals = state.arrivals;
  s.newest = std::move(state.newest);
}

std::int64_t ReplayBuffer::stored_bytes() const {
  return state_->config.pictures_a_sample() * state_->store->stored_bytes();
}

at::Tensor ReplayBuffer::stored(std::span<const Slot> slots) const {
  const auto& s = *state_;
  s.require_used(slots);
  if (!s.config.pairs) return s.store->read(slots);
  return at::cat({s.store->read(slots), s.store->read(s.partner_rows(slots))}, 1);
}

void ReplayBuffer::put_stored(std::span<const Slot> slots, const at::Tensor& stored) {
  const auto& s = *state_;
  s.require_used(slots);
  if (!s.config.pairs) return s.store->write(slots, stored);
  require_stored(stored, slots.size(), stored_bytes());
  const std::int64_t bytes = s.store->stored_bytes();
  s.store->write(slots, stored.narrow(1, 0, bytes));
  s.store->write(s.partner_rows(slots), stored.narrow(1, bytes, bytes));
}

std::vector<Slot> ReplayBuffer::take_changed() {
  auto& s = *state_;
  std::vector<Slot> live;
  for (const Slot slot : s.changed) {
    s.is_changed[static_cast<std::size_t>(slot)] = false;
    if (s.holds(slot) && is_here(slot)) live.push_back(slot);
  }
  s.changed.clear();
  return live;
}

}  // namespace riffle

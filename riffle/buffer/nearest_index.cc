#include "riffle/buffer/nearest_index.h"

#include <algorithm>
#include <limits>
#include <stdexcept>

#include <ATen/ATen.h>

#include "riffle/base/error.h"
#include "riffle/base/text.h"
#include "riffle/buffer/merge_cost.h"
#include "riffle/buffer/nearest_index_cpu.h"
#include "riffle/buffer/nearest_index_limits.h"
#include "riffle/tensors/named_tensors.h"
#if RIFFLE_CUDA
#include "riffle/buffer/nearest_index_gpu.h"
#endif

namespace riffle {
namespace {

constexpr std::int64_t kDistanceBlock = 1024;
constexpr const char* kWeights = "weights";  // in a saved state

void check_config(const NearestIndexConfig& config) {
  // Slots are kept as 32-bit numbers.
  if (config.slots < 1 || config.slots > std::numeric_limits<std::int32_t>::max()) {
    throw Error(
        cat("an index of ", config.slots, " slots; it needs at least 1 and fewer than 2^31"));
  }
  if (config.dim < 1) throw Error(cat("features of width ", config.dim, "; at least 1"));
  if (config.neighbours < 1 || config.neighbours > kMaxNeighbours) {
    throw Error(cat(config.neighbours, " neighbours per row; 1 to ", kMaxNeighbours));
  }
  if (config.merge && (config.merge->quarters < 0 || config.merge->quarters > 4)) {
    throw Error(cat("an exponent of ", config.merge->quarters, " quarters; 0 to 4"));
  }
  if (config.merge && config.merge->reach != 0 &&
      !(config.merge->reach >= MergeRule::kLeastReach)) {
    throw Error(
        cat("a reach of ", config.merge->reach, "; 0, or at least ", MergeRule::kLeastReach));
  }
}

at::Tensor as_tensor(const std::vector<std::uint64_t>& values) {
  at::Tensor tensor = at::empty({static_cast<std::int64_t>(values.size())}, at::kLong);
  std::copy(values.begin(), values.end(), tensor.data_ptr<std::int64_t>());
  return tensor;
}

std::vector<std::uint64_t> find_counts(const NamedTensors& state, const char* name,
                                       std::int64_t count) {
  const std::vector<std::int64_t> values = find_integers(state, name, count);
  return {values.begin(), values.end()};
}

const at::Tensor& find_like(const NamedTensors& state, const char* name, const at::Tensor& like) {
  const at::Tensor& tensor = find_tensor(state, name);
  if (tensor.scalar_type() != like.scalar_type() || tensor.sizes() != like.sizes()) {
    throw Error(cat("state of the nearest-neighbour index: '", name, "' is ", tensor.sizes(),
                    " of ", tensor.scalar_type(), ", expected ", like.sizes(), " of ",
                    like.scalar_type()));
  }
  return tensor;
}

std::vector<double> find_weights(const NamedTensors& state, std::int64_t slots) {
  const at::Tensor saved = find_like(state, kWeights, at::empty({slots}, at::kDouble));
  if (!saved.ge(NearestIndex::kLeastWeight).all().item<bool>() ||
      !saved.isfinite().all().item<bool>()) {
    throw Error("state of the nearest-neighbour index: 'weights' is damaged");
  }
  const auto* weights = saved.const_data_ptr<double>();
  return {weights, weights + slots};
}

#if !RIFFLE_CUDA
[[noreturn]] void refuse_gpu() {
  throw Error("this riffle was built without CUDA; use device cpu");
}
std::unique_ptr<NearestIndex> make_nearest_index_gpu(const NearestIndexConfig&) { refuse_gpu(); }
std::uint64_t nearest_index_gpu_bytes(const NearestIndexConfig&) { refuse_gpu(); }
#endif

}  // namespace

std::unique_ptr<NearestIndex> NearestIndex::create(const NearestIndexConfig& config) {
  check_config(config);
  if (config.device.is_cuda()) return make_nearest_index_gpu(config);
  if (config.device.is_cpu()) return std::make_unique<NearestIndexCpu>(config);
  throw Error(cat("device ", config.device.str(), " for the nearest-neighbour index; cpu or cuda"));
}

std::uint64_t NearestIndex::bytes(const NearestIndexConfig& config) {
  check_config(config);
  const std::uint64_t lists = config.slots * (config.neighbours * 8 + 12);
  // changed_, ages_, weights_, seen_, pending_, is_pending_
  const std::uint64_t mirrors = config.slots * (5 * 8 + 1);
  return lists + mirrors +
         (config.device.is_cuda() ? nearest_index_gpu_bytes(config)
                                  : NearestIndexCpu::own_bytes(config));
}

NearestIndex::NearestIndex(const NearestIndexConfig& config)
    : changed_(config.slots, 0),
      ages_(config.slots, 0),
      weights_(config.slots, 1.0),
      config_(config),
      is_pending_(config.slots, 0),
      seen_(config.slots, 0) {
  const auto options = at::TensorOptions().device(config.device);
  const std::int64_t k = config.neighbours;
  lists_.slots = at::full({config.slots, k}, -1, options.dtype(at::kInt));
  lists_.keys = at::full({config.slots, k}, -1, options.dtype(at::kInt));
  lists_.bound_key = at::full({config.slots}, -1, options.dtype(at::kInt));
  lists_.bound_change = at::zeros({config.slots}, options.dtype(at::kLong));
  pending_.reserve(config.slots);
}

void NearestIndex::check_slots(std::span<const std::int64_t> slots) {
  ++calls_;
  for (const std::int64_t slot : slots) {
    if (slot < 0 || slot >= config_.slots) {
      throw std::logic_error(cat("slot ", slot, " of an index of ", config_.slots, " slots"));
    }
    if (seen_[slot] == calls_) throw std::logic_error(cat("slot ", slot, " given twice"));
    seen_[slot] = calls_;
  }
}

void NearestIndex::write_checked(std::span<const std::int64_t> slots,
                                 std::span<const std::uint64_t> ages, const at::Tensor& features,
                                 double momentum) {
  check_slots(slots);
  if (slots.size() != ages.size()) throw std::logic_error("as many ages as slots");
  if (slots.empty()) return;
  const auto rows = static_cast<std::int64_t>(slots.size());
  if (!features.defined() || features.dim() != 2 || features.size(0) != rows) {
    throw std::logic_error(cat(rows, " slots need a matrix of as many features"));
  }
  if (features.size(1) != config_.dim) {
    throw Error(cat("the feature for slot ", slots[0], " has ", features.size(1),
                    " numbers; the index keeps ", config_.dim));
  }
  const at::Tensor prepared =
      features.detach()
          .to(config_.device, at::kFloat, /*non_blocking=*/config_.device.is_cuda())
          .contiguous();
  write(slots, ages, prepared, momentum, changes_ + 1);
  for (std::int64_t r = 0; r < rows; ++r) {
    const std::int64_t slot = slots[r];
    if (changed_[slot] == 0) ++size_;
    changed_[slot] = changes_ + 1 + r;
    ages_[slot] = ages[r];
    if (!is_pending_[slot]) pending_.push_back(slot);
    is_pending_[slot] = 1;
  }
  changes_ += rows;
}

void NearestIndex::set(std::span<const std::int64_t> slots, std::span<const std::uint64_t> ages,
                       const at::Tensor& features) {
  write_checked(slots, ages, features, 0.0);
}

void NearestIndex::blend(std::span<const std::int64_t> slots, std::span<const std::uint64_t> ages,
                         const at::Tensor& features, double momentum) {
  if (!(momentum >= 0.0 && momentum < 1.0)) {
    throw Error(cat("momentum ", momentum, " of the tracked features; from 0 to below 1"));
  }
  write_checked(slots, ages, features, momentum);
}

void NearestIndex::erase(std::span<const std::int64_t> slots) {
  check_slots(slots);
  for (const std::int64_t slot : slots) {
    if (changed_[slot] == 0) throw std::logic_error(cat("slot ", slot, " has no row to erase"));
  }
  if (slots.empty()) return;
  forget(slots);
  for (const std::int64_t slot : slots) changed_[slot] = 0;
  size_ -= static_cast<std::int64_t>(slots.size());
}

std::vector<Removal> NearestIndex::take_most_redundant(std::int64_t n) {
  if (n < 0 || n > size_) throw std::logic_error(cat("take ", n, " of ", size_, " rows"));
  if (n == 0) return check(), std::vector<Removal>();
  std::vector<std::int64_t> changed;
  changed.reserve(pending_.size());
  for (const std::int64_t slot : pending_) {
    if (changed_[slot] != 0) changed.push_back(slot);
  }
  std::sort(changed.begin(), changed.end(),
            [this](std::int64_t a, std::int64_t b) { return changed_[a] < changed_[b]; });
  std::vector<Removal> taken;
  try {
    taken = take(changed, n);
  } catch (const Refused& refusal) {
    // The order of changes was not what it seemed: all of them are looked at again next time.
    report(refusal.slot);
  }
  for (const std::int64_t slot : pending_) is_pending_[slot] = 0;
  pending_.clear();
  for (const Removal& removal : taken) changed_[removal.slot] = 0;
  size_ -= n;
  return taken;
}

void NearestIndex::weigh(std::span<const std::int64_t> slots, std::span<const double> weights) {
  check_slots(slots);
  if (slots.size() != weights.size()) throw std::logic_error("as many weights as slots");
  for (std::size_t i = 0; i < slots.size(); ++i) {
    if (changed_[slots[i]] != 0) throw std::logic_error(cat("slot ", slots[i], " has a row"));
    if (!(weights[i] >= kLeastWeight)) throw std::logic_error(cat("a weight of ", weights[i]));
    weights_[slots[i]] = weights[i];
  }
}

void NearestIndex::reinforce(std::span<const std::int64_t> slots, std::span<const double> weights) {
  check_slots(slots);
  if (!config_.merge) throw std::logic_error("an index without weights has none to add to");
  if (slots.size() != weights.size()) throw std::logic_error("as many weights as slots");
  for (const std::int64_t slot : slots) {
    if (changed_[slot] == 0) throw std::logic_error(cat("slot ", slot, " has no row"));
  }
  for (std::size_t i = 0; i < slots.size(); ++i) {
    double& weight = weights_[slots[i]];
    weight = merged_weight(weight, weights[i], /*distance=*/0, config_.merge->key_reach(),
                           config_.merge->weight_limit);
  }
  // Costs only rise, so what rows remember of their pairs holds.
  raised(slots);
}

void NearestIndex::halve_weights() {
  if (!config_.merge) throw std::logic_error("an index without weights has none to halve");
  check();
  for (double& weight : weights_) weight = std::max(0.5 * weight, kLeastWeight);
  // Costs may have fallen, so what rows remember of their pairs proves nothing any more.
  pending_.clear();
  for (std::int64_t slot = 0; slot < config_.slots; ++slot) {
    is_pending_[slot] = changed_[slot] != 0 ? 1 : 0;
    if (is_pending_[slot]) pending_.push_back(slot);
  }
  reweigh();
}

void NearestIndex::check() {
  const std::int64_t slot = refused();
  if (slot >= 0) report(slot);
}

void NearestIndex::report(std::int64_t slot) {
  resync();
  size_ = std::count_if(changed_.begin(), changed_.end(), [](auto change) { return change != 0; });
  refuse_feature(slot);
}

bool NearestIndex::contains(std::int64_t slot) const {
  if (slot < 0 || slot >= config_.slots) {
    throw std::logic_error(cat("slot ", slot, " of an index of ", config_.slots, " slots"));
  }
  return changed_[slot] != 0;
}

at::Tensor NearestIndex::nearest_distances() {
  check();
  std::vector<std::int64_t> present;
  for (std::int64_t slot = 0; slot < config_.slots; ++slot) {
    if (changed_[slot] != 0) present.push_back(slot);
  }
  at::Tensor nearest = at::full({config_.slots}, 2.0, at::kFloat);
  if (present.size() < 2) return nearest;
  const at::Tensor where = integers_tensor(present);
  const at::Tensor packed = rows().index_select(0, where.to(config_.device));
  const auto count = static_cast<std::int64_t>(present.size());
  at::Tensor scale = at::empty({count}, packed.options().dtype(at::kFloat));
  for (std::int64_t at = 0; at < count; at += kDistanceBlock) {
    const std::int64_t n = std::min(kDistanceBlock, count - at);
    scale.narrow(0, at, n).copy_(packed.narrow(0, at, n).to(at::kDouble).norm(2, {1}).reciprocal());
  }
  at::Tensor best = at::full({count}, -2.0, scale.options());
  at::Tensor block = at::empty({kDistanceBlock * kDistanceBlock}, scale.options());
  for (std::int64_t r = 0; r < count; r += kDistanceBlock) {
    const std::int64_t n = std::min(kDistanceBlock, count - r);
    for (std::int64_t c = 0; c < count; c += kDistanceBlock) {
      const std::int64_t m = std::min(kDistanceBlock, count - c);
      at::Tensor out = block.narrow(0, 0, n * m).view({n, m});
      product(out, packed.narrow(0, r, n), packed.narrow(0, c, m));
      out.mul_(scale.narrow(0, c, m));
      if (r == c) out.fill_diagonal_(-2.0);
      at::Tensor rows_best = best.narrow(0, r, n);
      at::maximum_out(rows_best, rows_best, std::get<0>(out.max(1)) * scale.narrow(0, r, n));
    }
  }
  nearest.index_put_({where}, at::clamp_min(1.0 - best, 0.0).cpu());
  return nearest;
}

NearestIndex::State NearestIndex::save() {
  check();
  std::vector<std::int64_t> waiting;
  for (const std::int64_t slot : pending_) {
    if (changed_[slot] != 0) waiting.push_back(slot);
  }
  State state = {{"rows", rows().cpu().contiguous().clone()},
                 {"changed", as_tensor(changed_)},
                 {"ages", as_tensor(ages_)},
                 {"changes", as_tensor({changes_})},
                 {"pending", integers_tensor(waiting)},
                 {"list_slots", lists_.slots.cpu().clone()},
                 {"list_keys", lists_.keys.cpu().clone()},
                 {"bound_key", lists_.bound_key.cpu().clone()},
                 {"bound_change", lists_.bound_change.cpu().clone()}};
  if (config_.merge)
    state.emplace_back(kWeights, at::tensor(at::ArrayRef<double>(weights_), at::kDouble));
  return state;
}

void NearestIndex::restore(const State& state) {
  const at::Tensor& stored = find_tensor(state, "rows");
  const std::vector<std::int64_t> shape = {config_.slots, config_.dim};
  if (stored.sizes() != at::IntArrayRef(shape) || stored.scalar_type() != stored_type()) {
    throw Error(cat("state of the nearest-neighbour index: rows ", stored.sizes(), " of ",
                    stored.scalar_type(), ", expected ", at::IntArrayRef(shape), " of ",
                    stored_type()));
  }
  std::vector<std::uint64_t> changed = find_counts(state, "changed", config_.slots);
  std::vector<std::uint64_t> ages = find_counts(state, "ages", config_.slots);
  const std::uint64_t changes = find_counts(state, "changes", 1)[0];
  const std::vector<std::int64_t> waiting = find_integers(state, "pending");
  for (const std::uint64_t change : changed) {
    if (change > changes) throw Error("state of the nearest-neighbour index: 'changed' is damaged");
  }
  for (const std::int64_t slot : waiting) {
    if (slot < 0 || slot >= config_.slots) {
      throw Error("state of the nearest-neighbour index: 'pending' is damaged");
    }
  }
  const at::Tensor& slots = find_like(state, "list_slots", lists_.slots);
  const at::Tensor& keys = find_like(state, "list_keys", lists_.keys);
  const at::Tensor& bound_key = find_like(state, "bound_key", lists_.bound_key);
  const at::Tensor& bound_change = find_like(state, "bound_change", lists_.bound_change);
  if (slots.ge(config_.slots).any().item<bool>() || slots.lt(-1).any().item<bool>()) {
    throw Error("state of the nearest-neighbour index: 'list_slots' is damaged");
  }

  std::vector<double> weights =
      config_.merge ? find_weights(state, config_.slots) : std::vector<double>(config_.slots, 1.0);

  lists_.slots.copy_(slots);
  lists_.keys.copy_(keys);
  lists_.bound_key.copy_(bound_key);
  lists_.bound_change.copy_(bound_change);
  changed_ = std::move(changed);
  ages_ = std::move(ages);
  weights_ = std::move(weights);
  changes_ = changes;
  pending_ = waiting;
  is_pending_.assign(config_.slots, 0);
  for (const std::int64_t slot : pending_) is_pending_[slot] = 1;
  size_ = std::count_if(changed_.begin(), changed_.end(), [](auto change) { return change != 0; });
  replace(stored);
}

NearestIndex::SavedRows NearestIndex::read(const State& state, std::int64_t slots) {
  const at::Tensor& rows = find_tensor(state, "rows");
  if (rows.dim() != 2 || rows.size(0) != slots || !rows.is_floating_point()) {
    throw Error(cat("state of the nearest-neighbour index: rows ", rows.sizes(), " of ",
                    rows.scalar_type(), " for ", slots, " slots"));
  }
  const bool weighted = tensor_or_null(state, kWeights) != nullptr;
  return {rows, integers_tensor(find_integers(state, "changed", slots)).ne(0),
          weighted ? find_weights(state, slots) : std::vector<double>()};
}

at::ScalarType NearestIndex::stored_type() const {
  switch (config_.type) {
    case FeatureType::float32:
      return at::kFloat;
    case FeatureType::float16:
      return at::kHalf;
    case FeatureType::bfloat16:
      return at::kBFloat16;
  }
  throw std::logic_error("unknown feature type");
}

void NearestIndex::refuse_feature(std::int64_t slot) {
  throw Error(cat("the feature for slot ", slot,
                  " is not finite or all zero; it needs finite numbers, not all of them 0"));
}

}  // namespace riffle

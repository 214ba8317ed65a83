#include "riffle/buffer/nearest_index_gpu.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include <ATen/ATen.h>
#include <ATen/Context.h>
#include <c10/cuda/CUDAFunctions.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>

#include "riffle/base/error.h"
#include "riffle/base/text.h"
#include "riffle/buffer/merge_cost.h"
#include "riffle/buffer/nearest_distance.h"
#include "riffle/buffer/nearest_index_cuda.h"
#include "riffle/tensors/check_cuda.h"

namespace riffle {
namespace {

namespace gpu = nearest_index_cuda;

constexpr std::int64_t kRowBlock = 2048;
constexpr std::int64_t kColumnBlock = 4 * gpu::kPart;
constexpr std::int64_t kPendingBlock = gpu::kPart;
constexpr std::int64_t kPadding = 64;

std::int64_t round_up(std::int64_t value, std::int64_t to) { return (value + to - 1) / to * to; }

void checked(cudaError_t status) { check_cuda(status, "the nearest-neighbour index"); }

// Tensor cores add 16 products at a time and cut the sum off instead of rounding it, so that errors
// add up.
double allowed_rounding(const NearestIndexConfig& config) {
  const double plain =
      float32_rounding(config.dim) + (config.merge ? merge_rounding(config.merge->reach) : 0.0);
  if (config.type == FeatureType::float32) return plain;
  return plain + std::ldexp(1.5 * (static_cast<double>(config.dim) / 16 + 1), -24);
}

gpu::Stored stored_as(FeatureType type) {
  switch (type) {
    case FeatureType::float32:
      return gpu::Stored::float32;
    case FeatureType::float16:
      return gpu::Stored::float16;
    case FeatureType::bfloat16:
      return gpu::Stored::bfloat16;
  }
  return gpu::Stored::float32;
}

// The most parts in which one block of rows finds its nearest: those of all slots, and those of all
// changed rows.
std::int64_t most_parts(const NearestIndexConfig& config) {
  return 2 * (config.slots / gpu::kPart + 2);
}

template <typename T>
T* data(const at::Tensor& tensor) {
  return static_cast<T*>(tensor.data_ptr());
}

class NearestIndexGpu : public NearestIndex {
 public:
  explicit NearestIndexGpu(const NearestIndexConfig& config)
      : NearestIndex(config), rounding_(allowed_rounding(config)) {
    const c10::cuda::CUDAGuard guard(config.device);
    const std::int64_t slots = config.slots;
    const std::int64_t padded = round_up(slots, kPadding);
    const std::int64_t stride = round_up(config.dim, 8);
    const std::int64_t tiles = round_up(slots, gpu::kTile) / gpu::kTile;
    const auto on = at::TensorOptions().device(config.device);
    rows_ = at::zeros({padded, stride}, on.dtype(stored_type()));
    inverse_norms_ = at::zeros({slots}, on.dtype(at::kDouble));
    scales_ = at::full({padded}, std::nan(""), on.dtype(at::kFloat));
    if (config.merge) {
      device_weights_ = at::ones({slots}, on.dtype(at::kDouble));
      inverse_weights_ = at::ones({padded}, on.dtype(at::kFloat));
    }
    device_changed_ = at::zeros({slots}, on.dtype(at::kLong));
    device_ages_ = at::zeros({slots}, on.dtype(at::kLong));
    values_ = at::full({slots}, -1, on.dtype(at::kInt));
    tiles_ = at::full({2, tiles}, -1, on.dtype(at::kInt));
    uncertain_ = at::zeros({gpu::kRescans}, on.dtype(at::kInt));
    rescan_keys_ = at::empty({gpu::kRescans, slots}, on.dtype(at::kInt));
    words_ = at::zeros({gpu::kTaken + gpu::kTakenWords * slots}, on.dtype(at::kInt));
    words_.narrow(0, gpu::kRefused, 1).fill_(-1);
    products_ = at::empty({kRowBlock * std::min(kColumnBlock, round_up(padded, gpu::kPart))},
                          on.dtype(at::kFloat));
    const std::int64_t found = kRowBlock * most_parts(config) * config.neighbours;
    found_similarities_ = at::empty({found}, on.dtype(at::kFloat));
    found_slots_ = at::empty({found}, on.dtype(at::kInt));

    view_.slots = static_cast<int>(slots);
    view_.dim = static_cast<int>(config.dim);
    view_.stride = static_cast<int>(stride);
    view_.neighbours = static_cast<int>(config.neighbours);
    view_.type = stored_as(config.type);
    view_.newer_leaves = config.tie == TieRule::newer;
    view_.quarters = config.merge ? config.merge->quarters : gpu::kUnweighted;
    view_.draws_stayer = config.merge && config.merge->stays == StayRule::drawn;
    view_.weight_limit = config.merge ? config.merge->weight_limit : 0;
    view_.reach = config.merge ? config.merge->key_reach() : 0;
    view_.inverse_reach = config.merge ? config.merge->inverse_reach() : 0;
    view_.rounding = rounding_;
    view_.rows = rows_.data_ptr();
    view_.inverse_norms = data<double>(inverse_norms_);
    view_.scales = data<float>(scales_);
    view_.changed = data<unsigned long long>(device_changed_);
    view_.ages = data<unsigned long long>(device_ages_);
    view_.weights = config.merge ? data<double>(device_weights_) : nullptr;
    view_.inverse_weights = config.merge ? data<float>(inverse_weights_) : nullptr;
    view_.list_slots = data<int>(lists_.slots);
    view_.list_keys = data<unsigned>(lists_.keys);
    view_.bound_key = data<unsigned>(lists_.bound_key);
    view_.bound_change = data<unsigned long long>(lists_.bound_change);
    view_.values = data<unsigned>(values_);
    view_.tile_keys = data<unsigned>(tiles_);
    view_.tile_slots = data<int>(tiles_) + tiles;
    view_.uncertain = data<int>(uncertain_);
    view_.rescan_keys = data<unsigned>(rescan_keys_);
    view_.words = data<int>(words_);
  }

  at::Tensor rows() const override {
    return rows_.narrow(0, 0, config_.slots).narrow(1, 0, config_.dim);
  }

  NearestIndexStats stats() override {
    const at::Tensor words = words_.narrow(0, 0, gpu::kWords).cpu();
    const int* word = words.data_ptr<int>();
    NearestIndexStats stats;
    stats.scanned = scanned_;
    stats.rescanned = static_cast<std::uint32_t>(word[gpu::kRescanned]);
    stats.examined = static_cast<std::uint32_t>(word[gpu::kExamined]);
    stats.largest_rounding = std::bit_cast<float>(word[gpu::kRounding]);
    stats.allowed_rounding = rounding_;
    return stats;
  }

 private:
  // Host numbers on the device. The copy is queued: pageable memory is read before the call
  // returns.
  at::Tensor upload(const void* from, std::int64_t count, at::ScalarType type) const {
    at::Tensor there = at::empty({count}, at::TensorOptions().device(config_.device).dtype(type));
    checked(cudaMemcpyAsync(there.data_ptr(), from, count * there.element_size(),
                            cudaMemcpyHostToDevice, stream()));
    return there;
  }
  cudaStream_t stream() const {
    return c10::cuda::getCurrentCUDAStream(config_.device.index()).stream();
  }

  void write(std::span<const std::int64_t> slots, std::span<const std::uint64_t> ages,
             const at::Tensor& features, double momentum, std::uint64_t first) override {
    const c10::cuda::CUDAGuard guard(config_.device);
    const auto count = static_cast<std::int64_t>(slots.size());
    std::vector<std::int64_t> both(slots.begin(), slots.end());
    both.insert(both.end(), ages.begin(), ages.end());
    const at::Tensor there = upload(both.data(), 2 * count, at::kLong);
    const at::Tensor fresh = at::empty_like(features);
    at::Tensor weights;
    if (config_.merge) {
      std::vector<double> here;
      for (const std::int64_t slot : slots) here.push_back(weights_[slot]);
      weights = upload(here.data(), count, at::kDouble);
    }
    checked(gpu::write_rows(
        view_, features.data_ptr<float>(), data<long long>(there),
        data<unsigned long long>(there) + count, config_.merge ? data<double>(weights) : nullptr,
        static_cast<int>(count), momentum, first, fresh.data_ptr<float>(), stream()));
    unchecked_ = true;
  }

  void forget(std::span<const std::int64_t> slots) override {
    const c10::cuda::CUDAGuard guard(config_.device);
    const auto count = static_cast<std::int64_t>(slots.size());
    const at::Tensor there = upload(slots.data(), count, at::kLong);
    checked(gpu::forget_rows(view_, data<long long>(there), static_cast<int>(count), stream()));
  }

  void product(at::Tensor& out, const at::Tensor& a, const at::Tensor& b) const override {
    // Whatever the program allows its network, TF32 would round the factors.
    const at::NoTF32Guard exactly;
    if (config_.type == FeatureType::float32) {
      at::mm_out(out, a, b.t());
    } else {
      at::mm_out(out, a, b.t(), at::kFloat);
    }
  }

  // As NearestIndexCpu::scan: with all rows that did not change, then among themselves.
  void scan(const at::Tensor& changed) {
    const std::int64_t count = changed.numel();
    const int* slots = changed.data_ptr<int>();
    const std::int64_t padded = round_up(config_.slots, kPadding);
    for (std::int64_t begin = 0; begin < count; begin += kRowBlock) {
      const std::int64_t rows = std::min(kRowBlock, count - begin);
      const at::Tensor left = rows_.index_select(0, changed.narrow(0, begin, rows));
      const std::int64_t main_parts = round_up(padded, gpu::kPart) / gpu::kPart;
      const std::int64_t parts = main_parts + round_up(begin + rows, kPendingBlock) / kPendingBlock;
      const gpu::Found found{data<float>(found_similarities_), data<int>(found_slots_),
                             static_cast<int>(parts)};
      gpu::Block block{};
      block.row_slots = slots + begin;
      for (std::int64_t column = 0; column < padded; column += kColumnBlock) {
        const std::int64_t columns = std::min(kColumnBlock, padded - column);
        block.scales = view_.scales + column;
        block.inverse_weights = config_.merge ? view_.inverse_weights + column : nullptr;
        block.first_slot = static_cast<int>(column);
        block.first_row_columns = columns;
        find(left, rows_.narrow(0, column, columns), block, found, column / gpu::kPart);
      }
      for (std::int64_t column = 0; column < begin + rows; column += kPendingBlock) {
        const std::int64_t columns = std::min(kPendingBlock, begin + rows - column);
        const std::int64_t wide = round_up(columns, 4);
        at::Tensor right = at::zeros({wide, rows_.size(1)}, rows_.options());
        at::Tensor used = right.narrow(0, 0, columns);
        at::index_select_out(used, rows_, 0, changed.narrow(0, column, columns));
        const at::Tensor scales = at::empty({2, wide}, scales_.options());
        float* inverse_weights = scales.data_ptr<float>() + wide;
        checked(gpu::gather_scales(view_, slots + column, static_cast<int>(columns),
                                   static_cast<int>(wide), scales.data_ptr<float>(),
                                   inverse_weights, stream()));
        block.scales = scales.data_ptr<float>();
        block.inverse_weights = inverse_weights;
        block.column_slots = slots + column;
        block.first_row_columns = begin - column;
        find(left, right, block, found, main_parts + column / kPendingBlock);
      }
      checked(gpu::refine_rows(view_, slots + begin, static_cast<int>(rows), found, stream()));
    }
    checked(gpu::show_rows(view_, slots, static_cast<int>(count), stream()));
    scanned_ += count;
  }

  // Completes `block`, which says what the columns are, with the products.
  void find(const at::Tensor& left, const at::Tensor& right, gpu::Block block,
            const gpu::Found& found, std::int64_t first_part) {
    const std::int64_t rows = left.size(0), columns = right.size(0);
    at::Tensor products = products_.narrow(0, 0, rows * columns).view({rows, columns});
    product(products, left, right);
    block.products = products.data_ptr<float>();
    block.rows = static_cast<int>(rows);
    block.columns = static_cast<int>(columns);
    checked(gpu::find_nearest(view_, block, found, static_cast<int>(first_part), stream()));
  }

  std::vector<Removal> take(std::span<const std::int64_t> changed, std::int64_t n) override {
    const c10::cuda::CUDAGuard guard(config_.device);
    if (!changed.empty()) {
      const std::vector<std::int32_t> narrow(changed.begin(), changed.end());
      scan(upload(narrow.data(), static_cast<std::int64_t>(narrow.size()), at::kInt));
    }
    std::vector<Removal> taken;
    int blocked = -1;
    while (true) {
      const std::int64_t rest = n - static_cast<std::int64_t>(taken.size());
      checked(gpu::select_rows(view_, static_cast<int>(rest), blocked, stream()));
      const at::Tensor words = words_.narrow(0, 0, gpu::kTaken + gpu::kTakenWords * rest).cpu();
      const int* word = words.data_ptr<int>();
      if (word[gpu::kRefused] >= 0) {
        accept_refusal();
        throw Refused{word[gpu::kRefused]};
      }
      unchecked_ = false;
      for (int i = 0; i < word[gpu::kCount]; ++i) {
        const int* each = word + gpu::kTaken + gpu::kTakenWords * i;
        const Removal removal{each[0], each[1]};
        taken.push_back(removal);
        changed_[removal.slot] = 0;
        if (config_.merge) {
          weights_[removal.into] = merged_weight(weights_[removal.into], weights_[removal.slot],
                                                 static_cast<DistanceKey>(each[2]), view_.reach,
                                                 config_.merge->weight_limit);
        }
      }
      blocked = word[gpu::kBlocked];
      if (static_cast<std::int64_t>(taken.size()) == n || blocked < 0) break;
    }
    if (static_cast<std::int64_t>(taken.size()) < n) {
      // Rows without a pair are left only when a single one is.
      const auto last =
          std::find_if(changed_.begin(), changed_.end(), [](auto change) { return change != 0; });
      taken.push_back({last - changed_.begin(), -1});
      forget({&taken.back().slot, 1});
    }
    return taken;
  }

  std::int64_t refused() override {
    if (!unchecked_) return -1;
    const c10::cuda::CUDAGuard guard(config_.device);
    unchecked_ = false;
    const int slot = words_.narrow(0, gpu::kRefused, 1).cpu().item<int>();
    if (slot >= 0) accept_refusal();
    return slot;
  }
  void accept_refusal() {
    unchecked_ = false;
    words_.narrow(0, gpu::kRefused, 1).fill_(-1);
  }

  void resync() override {
    const auto copy = [](const at::Tensor& from, std::vector<std::uint64_t>& to) {
      const at::Tensor here = from.cpu();
      std::copy_n(here.data_ptr<std::int64_t>(), to.size(), to.begin());
    };
    copy(device_changed_, changed_);
    copy(device_ages_, ages_);
  }

  void raised(std::span<const std::int64_t> slots) override {
    const c10::cuda::CUDAGuard guard(config_.device);
    const auto count = static_cast<std::int64_t>(slots.size());
    std::vector<double> risen;
    for (const std::int64_t slot : slots) risen.push_back(weights_[slot]);
    const at::Tensor where = upload(slots.data(), count, at::kLong);
    const at::Tensor weights = upload(risen.data(), count, at::kDouble);
    device_weights_.index_copy_(0, where, weights);
    inverse_weights_.index_copy_(0, where, weights.reciprocal().to(at::kFloat));
  }

  void reweigh() override {
    const c10::cuda::CUDAGuard guard(config_.device);
    device_weights_.copy_(upload(weights_.data(), config_.slots, at::kDouble));
    checked(gpu::measure_rows(view_, stream()));
    scales_.fill_(std::nan(""));
  }

  void replace(const at::Tensor& stored) override {
    const c10::cuda::CUDAGuard guard(config_.device);
    rows().copy_(stored);
    if (config_.merge) {
      device_weights_.copy_(upload(weights_.data(), config_.slots, at::kDouble));
    }
    device_changed_.copy_(upload(changed_.data(), config_.slots, at::kLong));
    device_ages_.copy_(upload(ages_.data(), config_.slots, at::kLong));
    accept_refusal();
    checked(gpu::measure_rows(view_, stream()));
    std::vector<std::int64_t> waiting;
    for (std::int64_t slot = 0; slot < config_.slots; ++slot) {
      if (is_pending(slot)) waiting.push_back(slot);
    }
    if (waiting.empty()) return;
    scales_.index_fill_(
        0, upload(waiting.data(), static_cast<std::int64_t>(waiting.size()), at::kLong),
        std::nan(""));
  }

  double rounding_;
  at::Tensor rows_, inverse_norms_, scales_, device_changed_, device_ages_, values_, tiles_;
  at::Tensor device_weights_, inverse_weights_;  // undefined without weights
  at::Tensor uncertain_, rescan_keys_, words_, products_, found_similarities_, found_slots_;
  gpu::View view_{};
  std::uint64_t scanned_ = 0;
  bool unchecked_ = false;  // something was written and nobody asked yet whether it was refused
};

}  // namespace

std::unique_ptr<NearestIndex> make_nearest_index_gpu(const NearestIndexConfig& config) {
  if (c10::cuda::device_count() == 0) {
    throw Error(
        cat("device ", config.device.str(), " for the nearest-neighbour index: no GPU here"));
  }
  NearestIndexConfig made = config;
  if (!made.device.has_index()) made.device = at::Device(at::kCUDA, c10::cuda::current_device());
  return std::make_unique<NearestIndexGpu>(made);
}

std::uint64_t nearest_index_gpu_bytes(const NearestIndexConfig& config) {
  const std::uint64_t element = config.type == FeatureType::float32 ? 4 : 2;
  const std::uint64_t padded = round_up(config.slots, gpu::kPart);
  const std::uint64_t stride = round_up(config.dim, 8);
  const std::uint64_t per_slot = stride * element + 8 + 4 + 8 + 8 + 4 + 4 + 4 * gpu::kRescans + 1 +
                                 (config.merge ? 8 + 4 + 4 : 4);
  const std::uint64_t products =
      kRowBlock * std::min<std::uint64_t>(kColumnBlock, padded) * sizeof(float);
  const std::uint64_t found = kRowBlock * most_parts(config) * config.neighbours * 8;
  const std::uint64_t gathered = (kRowBlock + kPendingBlock) * (stride * element + 4);
  return padded * per_slot + products + found + gathered;
}

}  // namespace riffle

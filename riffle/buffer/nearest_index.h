// Exact removal of the most redundant of many unit-length rows, kept up incrementally. Knows
// nothing of pictures or training. docs/minred.md explains the algorithm and its invariants.
//
// Definition. take_most_redundant(n) repeats n times: of the rows present, find the pair at the
// smallest cosine distance and remove one of its two ends, the older or the newer by the tie rule
// (`ages`). Distances are those of the rows as stored (after rounding to the storage type), in
// float64, rounded to multiples of 2^-30; of several pairs at the same distance the one whose later
// change happened first goes, then the one whose earlier change did. So the answer is a function of
// the history alone: it does not depend on the device, on the number of threads or on when it is
// asked for.
//
// With weights (config.merge) a row stands for as many samples as its weight says. The pair that
// costs least to merge is found (merge_cost.h) instead of the nearest. One of its two ends stays,
// by chance in proportion to the weights or the heavier one (of equal ones as the tie rule says),
// and takes the other's weight over, up to a limit. Chance is a function of the two ages.
//
// Cost. Setting a row costs O(dim). A take costs one product [rows changed since the last take x
// rows present] and some bookkeeping per removal; never anything quadratic in the number of rows.
// (The first take after a fill sees every row as changed; it still works in blocks.)
//
// Memory. O(slots * dim + slots * neighbours), and scratch: on the CPU, for each thread, a block of
// 256 x 1,024 products and 1,280 rows; on a GPU a block of 2,048 x 16,384 products (128 MiB), 16
// numbers a slot, 6,144 rows, and for 2,048 rows `neighbours` candidates from every 4,096 slots.
// bytes() returns the sum in advance. A call of n rows takes n * dim float32 numbers more while it
// runs; nearest_distances() a copy of all rows.
//
// Bad input. A feature that is not finite or all zero, or of another width than the index, is
// refused with an Error that names the slot; the refused call changes nothing. On a GPU the numbers
// are looked at there, so that tracking does not stall the queue: set and blend return at once and
// the refusal is thrown by the next check(), take_most_redundant(), nearest_distances() or save(),
// which then does nothing else; until then size() and contains() count what was refused. Slots out
// of range or given twice in a call, and erasing an absent row, are programmer errors
// (std::logic_error).
//
// Used by one thread; on a GPU work is queued on the current stream, and all calls must use the
// same one.
#pragma once

#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <ATen/core/Tensor.h>

#include "riffle/buffer/buffer_config.h"
#include "riffle/buffer/nearest_distance.h"

namespace riffle {

// How weights count when pairs are merged.
struct MergeRule {
  // Of the exponent, in quarters: 4 is an exponent of 1.
  int quarters = 4;
  StayRule stays = StayRule::drawn;
  // A row that takes another's weight over ends with at most this much, or with what it had.
  double weight_limit = std::numeric_limits<double>::infinity();
  // How far apart rows may be and still have something in common: a distance counts for less than
  // this (counted_distance() in merge_cost.h), and from it on nothing is taken over
  // (merged_weight()); 0: no such distance, otherwise at least kLeastReach.
  double reach = 0;
  // What a product may be wrong by must be far below a reach.
  static constexpr double kLeastReach = 0.01;

  // The same in units of keys.
  double key_reach() const { return reach * kKeysPerUnit; }
  float inverse_reach() const { return reach == 0 ? 0.0f : static_cast<float>(1.0 / reach); }
};

struct NearestIndexConfig {
  // Rows are named by slots in [0, slots).
  std::int64_t slots = 0;
  std::int64_t dim = 0;
  FeatureType type = FeatureType::float32;
  TieRule tie = TieRule::older;
  // None: rows have no weights, and the nearest pair goes first.
  std::optional<MergeRule> merge;
  at::Device device = at::Device(at::kCPU);
  // Nearest rows remembered per row, 1 to 16: decides speed, never the result.
  std::int64_t neighbours = 8;
};

// A row that was taken out, and the other end of its pair, which stayed; -1 if there was none.
struct Removal {
  std::int64_t slot = -1;
  std::int64_t into = -1;

  bool operator==(const Removal&) const = default;
};

// What the index did, for benchmarks and metrics.
struct NearestIndexStats {
  // Changed rows compared with all others, in large products.
  std::uint64_t scanned = 0;
  // Rows scanned again because their remembered neighbours were gone.
  std::uint64_t rescanned = 0;
  // Candidates examined while removing.
  std::uint64_t examined = 0;
  // Of a float32 product against float64, among remembered neighbours.
  double largest_rounding = 0;
  // What the index allows for; a row beyond it is scanned again in float64.
  double allowed_rounding = 0;
};

class NearestIndex {
 public:
  using State = std::vector<std::pair<std::string, at::Tensor>>;

  // Takes all memory. Throws Error if the device is not there or a number is out of range.
  static std::unique_ptr<NearestIndex> create(const NearestIndexConfig& config);
  // Returns the most that create() and all later calls take on the device.
  static std::uint64_t bytes(const NearestIndexConfig& config);

  virtual ~NearestIndex() = default;

  // Sets the rows of these slots, new or in place of old ones. `features` is [slots, dim] of any
  // float type, on any device, of any length other than zero: the index normalises. `ages`: for the
  // tie rule; smaller is older.
  void set(std::span<const std::int64_t> slots, std::span<const std::uint64_t> ages,
           const at::Tensor& features);
  // As set for slots without a row; the others become normalize(momentum * row + (1 -
  // momentum) * normalize(feature)), or normalize(feature) should the two cancel.
  void blend(std::span<const std::int64_t> slots, std::span<const std::uint64_t> ages,
             const at::Tensor& features, double momentum);
  void erase(std::span<const std::int64_t> slots);

  // Takes out the n most redundant rows, one after another, and returns them in that
  // order. Requires n <= size().
  std::vector<Removal> take_most_redundant(std::int64_t n);

  // Sets the weights, all positive, that slots without a row will have when they get one.
  // Requires that none of the slots has a row.
  void weigh(std::span<const std::int64_t> slots, std::span<const double> weights);
  // Adds to the weights of rows, as if others of these weights had been merged into them. Requires
  // an index with weights and a row in each slot.
  void reinforce(std::span<const std::int64_t> slots, std::span<const double> weights);
  // By slot; 1 unless weigh() set another.
  std::span<const double> weights() const { return weights_; }
  // Halves all weights, though none falls below kLeastWeight. Costs as much as if all rows
  // had changed. Requires an index with weights.
  void halve_weights();
  static constexpr double kLeastWeight = 0x1p-60;

  bool contains(std::int64_t slot) const;
  std::int64_t size() const { return size_; }
  // Throws the refusal of an earlier set or blend, if it has not been thrown yet.
  void check();

  // Returns the distance of each row to the nearest other one, to about 1e-5: [slots] float32 on
  // the CPU, 2 where there is no row or no other. Costs a product of all rows with all rows, in
  // blocks.
  at::Tensor nearest_distances();
  // [slots, dim] in the storage type, on the index's device; rows of absent slots mean
  // nothing.
  virtual at::Tensor rows() const = 0;

  // Returns the exact state, on the CPU: a restored index continues as this one would, also on
  // another device.
  State save();
  // Throws Error, and changes nothing, if the state is not of an index of this size, width and
  // type.
  void restore(const State& state);
  // What a saved index holds, without making one: its rows, [slots, dim] in the storage type;
  // whether a slot has one, [slots] bool; the weights by slot, empty if it has none. Throws Error
  // if the state is not of an index of this size.
  struct SavedRows {
    at::Tensor rows;
    at::Tensor present;
    std::vector<double> weights;
  };
  static SavedRows read(const State& state, std::int64_t slots);

  virtual NearestIndexStats stats() = 0;
  const NearestIndexConfig& config() const { return config_; }

 protected:
  explicit NearestIndex(const NearestIndexConfig& config);

  struct Refused {
    std::int64_t slot;
  };
  [[noreturn]] static void refuse_feature(std::int64_t slot);
  at::ScalarType stored_type() const;
  bool is_pending(std::int64_t slot) const { return is_pending_[slot] != 0; }

  // What each row remembers of the rows that changed before it (docs/minred.md), on the
  // index's device.
  struct Lists {
    // The nearest, in order of (key, change): [slots, neighbours] int32, -1 for none.
    at::Tensor slots;
    // Their distances: [slots, neighbours] int32, read as unsigned.
    at::Tensor keys;
    // Nothing outside the list comes before this (key, change): [slots] int32, read as
    // unsigned, and [slots] int64.
    at::Tensor bound_key;
    at::Tensor bound_change;
  };
  Lists lists_;

  // When each row last changed, counted over all changes; 0: no row. Changes in one call
  // count in the order given.
  std::vector<std::uint64_t> changed_;
  std::vector<std::uint64_t> ages_;
  std::vector<double> weights_;
  NearestIndexConfig config_;

 private:
  // `features` is float32, contiguous, on the index's device; row r is change first + r.
  virtual void write(std::span<const std::int64_t> slots, std::span<const std::uint64_t> ages,
                     const at::Tensor& features, double momentum, std::uint64_t first) = 0;
  virtual void forget(std::span<const std::int64_t> slots) = 0;
  // `changed`: rows that changed since the last call, in order of their change. Throws
  // Refused, having taken nothing, after a refusal. Brings weights_ up to date; changed_
  // it leaves alone or sets to 0 for those taken.
  virtual std::vector<Removal> take(std::span<const std::int64_t> changed, std::int64_t n) = 0;
  // The weights of these rows rose in weights_.
  virtual void raised(std::span<const std::int64_t> slots) = 0;
  // All weights in weights_ were replaced, and all rows wait for their scan again.
  virtual void reweigh() = 0;
  // A slot refused by a write that was only queued, or -1. Waits for the device.
  virtual std::int64_t refused() { return -1; }
  // After a refusal: brings changed_ and ages_ up to date with the device.
  virtual void resync() {}
  // restore() replaced changed_, ages_ and lists_; these are the rows, in the storage
  // type, on the CPU.
  virtual void replace(const at::Tensor& rows) = 0;
  // out = a * b^T in float32, without rounding of the factors. All on the index's device.
  virtual void product(at::Tensor& out, const at::Tensor& a, const at::Tensor& b) const = 0;

  void write_checked(std::span<const std::int64_t> slots, std::span<const std::uint64_t> ages,
                     const at::Tensor& features, double momentum);
  void check_slots(std::span<const std::int64_t> slots);
  [[noreturn]] void report(std::int64_t slot);

  std::int64_t size_ = 0;
  std::uint64_t changes_ = 0;
  std::vector<std::int64_t> pending_;  // changed since the last take; may name rows gone since
  std::vector<std::uint8_t> is_pending_;
  std::vector<std::uint64_t> seen_;  // the call that last named a slot, to find slots given twice
  std::uint64_t calls_ = 0;
};

}  // namespace riffle

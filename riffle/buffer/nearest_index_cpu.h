// The nearest-neighbour index on the CPU: LibTorch's float32 product over blocks of rows, a float64
// look at the few nearest, and a lazy heap of rows that could be the next to go.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "riffle/buffer/nearest_distance.h"
#include "riffle/buffer/nearest_index.h"
#include "riffle/buffer/nearest_index_limits.h"

namespace riffle {

class NearestIndexCpu : public NearestIndex {
 public:
  explicit NearestIndexCpu(const NearestIndexConfig& config);

  static std::uint64_t own_bytes(const NearestIndexConfig& config);

  at::Tensor rows() const override { return rows_; }
  NearestIndexStats stats() override { return stats_; }

 private:
  // The elements of a tensor, as the type they are stored in.
  template <typename Stored>
  static Stored* data(const at::Tensor& tensor) {
    return static_cast<Stored*>(tensor.data_ptr());
  }

  // A row in the heap: no pair that it owns comes before this key.
  struct Waiting {
    DistanceKey key;
    std::uint64_t change;
    std::int64_t slot;
  };
  struct Nearest {
    DistanceKey key = kNoKey;
    // -1: nobody known; the row must be looked at again before the key can be trusted.
    std::int64_t slot = -1;
    DistanceKey distance = kNoKey;
  };
  struct Candidate {
    float similarity;
    std::int32_t slot;
  };
  // The candidates with the largest similarity, largest first.
  struct Best {
    Candidate found[kMaxNeighbours];
    std::int64_t count = 0;
  };

  // Rows to compare with, and their slots. A scale is one over the row's length, or NaN for a row
  // to pass over.
  struct Columns {
    at::Tensor rows;
    const float* scales;
    const float* inverse_weights;
    const std::int32_t* slots;
    std::int64_t count;
  };

  // What a thread needs for itself.
  struct Scratch {
    at::Tensor products;   // [kRowBlock * kColumnBlock]
    at::Tensor converted;  // [kColumnBlock, dim], for rows not stored as float32
  };

  static constexpr std::int64_t kRowBlock = 256;
  static constexpr std::int64_t kLeastRowBlock = 32;
  static constexpr std::int64_t kColumnBlock = 1024;

  // How many turns of a loop one thread should take at least, for turns of N operations: some
  // ten microseconds' worth. Waking a thread for less is slow, and on a busy machine very slow.
  static std::int64_t grain(std::int64_t operations) { return 262144 / operations + 1; }

  void write(std::span<const std::int64_t> slots, std::span<const std::uint64_t> ages,
             const at::Tensor& features, double momentum, std::uint64_t first) override;
  void forget(std::span<const std::int64_t> slots) override;
  std::vector<Removal> take(std::span<const std::int64_t> changed, std::int64_t n) override;
  void raised(std::span<const std::int64_t> slots) override;
  void reweigh() override;
  void replace(const at::Tensor& rows) override;
  void product(at::Tensor& out, const at::Tensor& a, const at::Tensor& b) const override;

  void scan(std::span<const std::int64_t> changed);
  // Rows that changed, in order of their change.
  struct Changed {
    std::span<const std::int64_t> rows;
    std::vector<std::int32_t> slots;
    std::vector<float> scales;
    std::vector<float> inverse_weights;
  };
  // Compares the changed rows from `begin` to `end` with all others; returns the largest rounding.
  double scan_group(const Changed& changed, std::int64_t begin, std::int64_t end, Scratch& scratch);
  // Offers the products of `left`, the rows in `slots`, with the columns to those rows' lists. Row
  // r sees the first first_row_columns + r columns.
  void offer_block(const at::Tensor& left, std::span<const std::int64_t> slots, const Columns& part,
                   std::vector<Best>& best, std::int64_t first_row_columns, Scratch& scratch) const;
  void offer(const float* products, const float* scales, const Columns& part, std::int64_t columns,
             Best& best) const;
  double refine(std::int64_t slot, const Best& best);
  // The distance of a row to a candidate, by the product alone.
  double seemed(std::int64_t slot, const Candidate& other) const;
  void rescan(std::int64_t slot);
  void keep(std::int64_t slot, std::span<Nearest> nearest);
  at::Tensor gather(std::span<const std::int64_t> slots) const;
  at::Tensor float_rows(std::int64_t begin, std::int64_t count, Scratch& scratch) const;
  Scratch make_scratch() const;

  Nearest nearest_of(std::int64_t slot) const;
  // The order of two rows by what merging them costs: the distance itself in an index without
  // weights.
  DistanceKey cost(DistanceKey distance, std::int64_t a, std::int64_t b) const;
  std::int64_t who_leaves(std::int64_t a, std::int64_t b) const;
  // Takes one end of a pair out; the other takes its weight over.
  Removal remove(std::int64_t a, std::int64_t b, DistanceKey distance);
  void set_inverse_weight(std::int64_t slot);
  bool owns(std::int64_t owner, std::int64_t other) const {
    return changed_[other] != 0 && changed_[other] < changed_[owner];
  }
  void push(std::int64_t slot);
  void drop(std::int64_t slot);
  // The row as float32; `room` holds dim numbers and is used when the row is stored otherwise.
  const float* row(std::int64_t slot, float* room) const;
  DistanceKey key_of(std::int64_t a, std::int64_t b, const float* row_a, float* room) const;

  at::Tensor rows_;
  std::vector<double> inverse_norms_;
  // Inverse norms; NaN, which is nearer than nothing, where a scan must not look.
  std::vector<float> scales_;
  // One over the weights, and as many ones as a block has columns; empty without weights.
  std::vector<float> inverse_weights_;
  std::vector<float> ones_;
  std::vector<std::int32_t> all_slots_;
  std::vector<Waiting> heap_;
  std::vector<Scratch> scratch_;  // one a thread
  NearestIndexStats stats_;
};

}  // namespace riffle

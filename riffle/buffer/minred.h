// Minimum redundancy: whoever is most like another sample leaves.
//
// Of the samples that have a feature, the pair at the smallest cosine distance loses one end (the
// older or the newer, an option), again and again until enough have left. A sample without a
// feature takes no part. A feature comes on arrival or with the first draw; each later draw moves
// it: normalize(momentum * old + (1 - momentum) * new).
//
// Two other ways out come first: samples drawn more often than the draw limit, oldest first; and,
// when fewer than two samples with a feature are there for each that must leave, the oldest of all.
//
// Cost: that of NearestIndex, and O(log B) a sample. Features that it refuses are refused here.
#pragma once

#include <map>

#include "riffle/buffer/nearest_index.h"
#include "riffle/buffer/policy.h"

namespace riffle {

// The index behind such a policy, for `slots` slots.
NearestIndexConfig minred_index(const BufferConfig& config, std::int64_t slots,
                                std::int64_t feature_dim, at::Device device);

class MinRed : public Policy {
 public:
  MinRed(const BufferConfig& config, std::int64_t slots, std::int64_t feature_dim,
         at::Device device);

  void inserted(std::span<const Slot> slots, const at::Tensor& features) override;
  void drawn(std::span<const Slot> slots) override;
  void tracked(std::span<const Slot> slots, const at::Tensor& features) override;
  std::vector<Slot> evict(std::int64_t n) override;
  PolicyStats stats(bool nearest) const override;
  NamedTensors save() const override;
  void restore(const NamedTensors& state) override;

 private:
  struct Record {
    std::uint64_t arrival = 0;
    std::int64_t draws = 0;
  };
  using ByAge = std::map<std::uint64_t, Slot>;  // by arrival

  Record& record(Slot slot) { return records_[static_cast<std::size_t>(slot)]; }
  bool worn_out(const Record& sample) const {
    return draw_limit_ > 0 && sample.draws > draw_limit_;
  }
  std::vector<std::uint64_t> arrivals_of(std::span<const Slot> slots) const;
  // Takes the n oldest of `candidates` out of the policy.
  std::vector<Slot> take_oldest(const ByAge& candidates, std::int64_t n);
  void forget(Slot slot);

  double momentum_;
  std::int64_t draw_limit_;
  std::unique_ptr<NearestIndex> index_;  // of the samples with a feature
  std::vector<Record> records_;          // by slot
  ByAge held_;
  ByAge worn_;  // those of held_ drawn more often than the limit
  std::uint64_t arrivals_ = 0;
  std::int64_t evicted_redundant_ = 0;
  std::int64_t evicted_oldest_ = 0;
  std::int64_t evicted_worn_ = 0;
};

}  // namespace riffle

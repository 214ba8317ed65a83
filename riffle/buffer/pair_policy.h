// What the policies that remove one of a pair of like samples share: who is held, since when and
// how often drawn, and the index of those with a feature.
//
// A sample without a feature takes no part. A feature comes on arrival or with the first draw; each
// later draw moves it: normalize(momentum * old + (1 - momentum) * new).
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

class PairPolicy : public Policy {
 public:
  void inserted(std::span<const Slot> slots, const at::Tensor& features) override;
  void drawn(std::span<const Slot> slots) override;
  void tracked(std::span<const Slot> slots, const at::Tensor& features) override;
  std::vector<Slot> evict(std::int64_t n) override;
  PolicyStats stats(bool nearest) const override;
  NamedTensors save() const override;
  void restore(const NamedTensors& state) override;
  // See PolicyKind.
  static SavedPolicy read(const NamedTensors& state, std::int64_t slots);

 protected:
  // `reason`: what evictions of one of a pair are called in PolicyStats.
  PairPolicy(const BufferConfig& config, const NearestIndexConfig& index, std::string reason);

  NearestIndex& index() { return *index_; }
  const NearestIndex& index() const { return *index_; }
  // The two halves of inserted(): a batch that is refused, is refused by the first.
  void set_features(std::span<const Slot> slots, const at::Tensor& features);
  void record_arrivals(std::span<const Slot> slots);

  // How many samples have arrived so far: the number of the next one.
  std::uint64_t arrivals() const { return arrivals_; }

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
  std::string reason_;
  std::unique_ptr<NearestIndex> index_;  // of the samples with a feature
  std::vector<Record> records_;          // by slot
  ByAge held_;
  ByAge worn_;  // those of held_ drawn more often than the limit
  std::uint64_t arrivals_ = 0;
  std::int64_t evicted_of_pairs_ = 0;
  std::int64_t evicted_oldest_ = 0;
  std::int64_t evicted_worn_ = 0;
};

}  // namespace riffle

// Merging by weight: the buffer is a summary of the stream, in which every sample stands for those
// that were merged into it.
//
// Each sample has a weight, 1 on arrival. Of the pair that costs least to merge, by distance and
// weights (merge_cost.h), one leaves and the other takes its weight over; again and again until
// enough have left. Who stays is decided by chance in proportion to the weights, so that each
// sample held is a uniform draw from those it stands for; by option the heavier one.
//
// Repeats are merged first, since they are near. So are samples that stand alone, since they are
// light: unlike MinRed, which keeps whatever is far from everything, this policy does not fill up
// with junk. Two samples as far apart as `buffer.merge_reach` have nothing in common. No distance
// counts for more than that, so being far from everything makes a sample no more precious. And a
// weight goes over in part only, the less the farther the two are apart: a sample that others were
// forced upon still counts as one that stands alone.
//
// Weights may have a limit; among samples at it the nearest pair goes first, as in MinRed.
//
// Weights fade: all are halved whenever `buffer.half_life` more samples have arrived, and samples
// in between arrive a little heavier than the one before, so that at any time a sample counts half
// as much as one that arrived a half-life later. Without a half-life all of the past counts the
// same.
#pragma once

#include "riffle/buffer/pair_policy.h"

namespace riffle {

class Merge : public PairPolicy {
 public:
  explicit Merge(const PolicySetting& setting);

  // The index behind such a policy.
  static NearestIndexConfig index_config(const PolicySetting& setting);

  void inserted(std::span<const Slot> slots, const at::Tensor& features) override;
  std::span<const double> weights() const override { return index().weights(); }

 private:
  // Returns the half-lives that passed before this arrival; 0 without a half-life.
  double half_lives(std::uint64_t arrival) const;

  double half_life_;  // in samples; 0: none
};

}  // namespace riffle

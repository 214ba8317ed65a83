// Minimum redundancy: whoever is most like another sample leaves.
//
// Of the samples that have a feature, the pair at the smallest cosine distance loses one end (the
// older or the newer, an option), again and again until enough have left.
#pragma once

#include "riffle/buffer/pair_policy.h"

namespace riffle {

class MinRed : public PairPolicy {
 public:
  explicit MinRed(const PolicySetting& setting);

  // The index behind such a policy.
  static NearestIndexConfig index_config(const PolicySetting& setting);
};

}  // namespace riffle

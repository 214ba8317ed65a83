// How ranks (riffle/dist) divide the batch of an update.
#pragma once

#include <cstdint>

#include "riffle/augment/view_plan.h"
#include "riffle/train/train_config.h"

namespace riffle {

// The part of one rank: as many samples as each other rank has, and as many of those that come
// straight from the stream (train.fresh), which stand first in the batch and in each part. If those
// cannot be divided, none counts as fresh.
struct BatchPart {
  // Requires that `ranks` divides train.batch.
  BatchPart(const TrainConfig& train, int rank, int ranks)
      : samples(train.batch / ranks),
        fresh(train.fresh_samples() % ranks == 0 ? train.fresh_samples() / ranks : 0),
        places{.first = rank * fresh,
               .count = fresh,
               .rest = ranks * fresh + rank * (samples - fresh)} {}

  std::int64_t samples;
  std::int64_t fresh;
  // In the batch of all.
  BatchPlaces places;
};

}  // namespace riffle

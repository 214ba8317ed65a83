// Which frame gives the second view of each sample (augment.temporal).
//
// Partners are of one stream batch: nothing has to be kept from batch to batch, so memory stays
// bounded and a run that is resumed between two batches chooses the same.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "riffle/base/random.h"
#include "riffle/stream/stream.h"

namespace riffle {

// Returns, by sample, the place in the batch of another frame of its clip, at most `most_apart`
// frames before or after it, each as likely; the sample's own place if there is none. Frames of a
// clip are counted as they stand in the batch. O(batch).
std::vector<std::int64_t> choose_partners(std::span<const Sample> batch, std::int64_t most_apart,
                                          Random& random);

// Returns the number of samples that are their own partners.
std::int64_t count_alone(std::span<const std::int64_t> partners);

}  // namespace riffle

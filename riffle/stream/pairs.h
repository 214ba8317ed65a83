// How correlated the samples of a batch are: measured from their clips, and expected from the
// correlation of neighbours.
#pragma once

#include <cstdint>
#include <span>

namespace riffle {

// Returns the share of all pairs of a batch that come from one clip, from 0 to 1; 0 for fewer than
// two samples. A sample without a clip (kNoClip) shares none. Costs a sort.
double same_clip_share(std::span<const std::int64_t> clips);

// Returns the probability that a random pair among n consecutive samples is correlated, if
// neighbours are with probability p and samples k apart with probability p^k:
//
//   2 / (n (n - 1)) * sum over k from 1 to n - 1 of (n - k) p^k
//
// in closed form, accurate for every p in [0, 1]. The sum and its closed form correct two slips of
// the printed equation (exponent j - 1 for j - i, b p / (1 - p) for b / (1 - p)). 0 for n < 2.
//
// With n = b this is a batch taken straight from the stream; with n = B a batch drawn from a FIFO
// buffer of B samples, and close to (b / B) of the former when both are large.
double pair_correlation(std::int64_t n, double p);

}  // namespace riffle

// The distance by which the nearest-neighbour index orders pairs, the same to the last bit on every
// device, and the inner loops around it on the CPU.
//
// Products of two float32 numbers are exact in float64, so a sum of them depends on the order of
// the additions alone, with or without fused multiply-add. The order is fixed here: element i is
// added to partial sum i mod 64, in order of i; then neighbouring partial sums are added in pairs
// (2l, 2l + 1), and the 32 results folded in half five times (l, l + 16), (l, l + 8), and so on.
// One warp of a GPU does the same in its registers.
#pragma once

#include <cstdint>

namespace riffle {

// A distance in units of 2^-30, from 0 to 2^31.
using DistanceKey = std::uint32_t;
constexpr double kKeysPerUnit = 1073741824.0;
constexpr DistanceKey kNoKey = 0xFFFFFFFFu;

double dot64(const float* a, const float* b, std::int64_t dim);

// The distance of two rows with this dot product; `inverse_norms` is the product of one over their
// lengths.
DistanceKey distance_key(double dot, double inverse_norms);

// A key that no distance of at least `distance` is below.
DistanceKey key_at_most(double distance);

// How far a float32 sum of `dim` float32 products of unit rows may be from the true one. Rounding
// errors of a sum are a random walk: its spread is below 2^-25 * sqrt(dim), and this allows for
// several times that.
double float32_rounding(std::int64_t dim);

// maxima[b] = the largest products[i] * scales[i] of block b of kMaximaBlock numbers; NaN counts
// as smallest. Only whole blocks are looked at; minus infinity where all are NaN.
constexpr std::int64_t kMaximaBlock = 64;
void block_maxima(const float* products, const float* scales, std::int64_t blocks, float* maxima);

// Finite 16-bit numbers as float32, exactly.
void widen_float16(const std::uint16_t* from, std::int64_t count, float* to);
void widen_bfloat16(const std::uint16_t* from, std::int64_t count, float* to);

}  // namespace riffle

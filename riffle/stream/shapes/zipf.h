// zipf:classes=N,exponent=1,seed=0 leaves a few classes common and most rare, as the world has
// them: a class of rank r is kept with probability r^-exponent.
//
//   classes    how many labels the stream has, about; required
//   exponent   of Zipf's law; 0 keeps everything
//   seed       of the ranks, and of which samples are kept
//
// Where all labels are equally frequent below, they follow Zipf's law here. So that one pass is
// enough, whatever labels are still to come, each draws its rank from 1 to `classes` by its name
// alone: two may have the same rank. Of 200 classes about 3 % of the samples are kept; what is
// dropped is read and decoded all the same. Put it before `clips`.
//
// A sample without a label ends the stream with an Error.
#pragma once

#include "riffle/stream/shapes/shape.h"

namespace riffle {

// From 1 to `classes`.
std::int64_t zipf_rank(const std::string& label, std::int64_t classes, std::uint64_t seed);

std::unique_ptr<Stream> shape_zipf(Uri& options, const StreamFactory& below);

}  // namespace riffle

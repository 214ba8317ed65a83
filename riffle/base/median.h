// The middle of some measurements: one disturbed turn on a noisy machine does not move it.
#pragma once

#include <vector>

namespace riffle {

// Of an even number of values: the mean of the middle two. There must be one at least.
double median(std::vector<double> values);

}  // namespace riffle

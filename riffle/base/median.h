// The median of some measurements, which one disturbed run on a noisy machine does not move.
#pragma once

#include <vector>

namespace riffle {

// Returns the median; of an even number of values, the mean of the middle two. Requires a value.
double median(std::vector<double> values);

}  // namespace riffle

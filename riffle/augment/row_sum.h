// The one loop behind resize and blur: a weighted sum of rows.
#pragma once

namespace riffle {

// out[i] = sum over k of weights[k] * rows[k][i], for i in [0, length), added in the order of k.
// The rows may overlap one another but not `out`. taps >= 1.
void sum_rows(const float* const* rows, const float* weights, int taps, int length, float* out);

}  // namespace riffle

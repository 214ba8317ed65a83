// The loop that resizing and blurring share: a weighted sum of rows.
#pragma once

namespace riffle {

// Sets out[i] to the sum over k of weights[k] * rows[k][i], added in the order of k, for i in
// [0, length). The rows may overlap one another but not `out`. Requires taps >= 1.
void sum_rows(const float* const* rows, const float* weights, int taps, int length, float* out);

}  // namespace riffle

#include "riffle/augment/row_sum.h"

#include "riffle/augment/simd.h"

namespace riffle {

// Four rows at a time where there are as many: the sum then passes through memory once for four
// multiplications. Two and three are apart because enlarging, the usual way of a crop, has two.
RIFFLE_SIMD void sum_rows(const float* const* rows, const float* weights, int taps, int length,
                          float* __restrict out) {
  if (taps == 1) {
    const float* a = rows[0];
    const float u = weights[0];
    for (int i = 0; i < length; ++i) out[i] = u * a[i];
    return;
  }
  if (taps == 2) {
    const float *a = rows[0], *b = rows[1];
    const float u = weights[0], v = weights[1];
    for (int i = 0; i < length; ++i) out[i] = u * a[i] + v * b[i];
    return;
  }
  if (taps == 3) {
    const float *a = rows[0], *b = rows[1], *c = rows[2];
    const float u = weights[0], v = weights[1], w = weights[2];
    for (int i = 0; i < length; ++i) out[i] = u * a[i] + v * b[i] + w * c[i];
    return;
  }
  int k = 0;
  for (; k + 4 <= taps; k += 4) {
    const float *a = rows[k], *b = rows[k + 1], *c = rows[k + 2], *d = rows[k + 3];
    const float u = weights[k], v = weights[k + 1], w = weights[k + 2], x = weights[k + 3];
    if (k == 0) {
      for (int i = 0; i < length; ++i) out[i] = u * a[i] + v * b[i] + w * c[i] + x * d[i];
    } else {
      for (int i = 0; i < length; ++i) {
        out[i] = out[i] + u * a[i] + v * b[i] + w * c[i] + x * d[i];
      }
    }
  }
  for (; k < taps; ++k) {
    const float* a = rows[k];
    const float u = weights[k];
    for (int i = 0; i < length; ++i) out[i] = out[i] + u * a[i];
  }
}

}  // namespace riffle

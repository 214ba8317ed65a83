#include "riffle/model/batch_norm_kernel.h"

// Channels are few and rows many, so the vectors run along the channels, and four rows at a time
// keep the sums from waiting for one another.
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && !defined(__SANITIZE_THREAD__)
#define RIFFLE_CLONES __attribute__((target_clones("avx512f", "avx2", "default")))
#else
#define RIFFLE_CLONES
#endif

namespace riffle::batch_norm_kernel {
namespace {

constexpr std::int64_t kRows = 4;

// Takes both by value, so that neither load depends on the other and the choice becomes a mask.
[[gnu::always_inline]] inline float where_positive(float y, float g) { return y > 0 ? g : 0.0f; }

}  // namespace

RIFFLE_CLONES
void add_moments(const float* __restrict x, std::int64_t rows, std::int64_t channels,
                 const float* __restrict origin, float* __restrict sum, float* __restrict squares) {
  std::int64_t row = 0;
  for (; row + kRows <= rows; row += kRows) {
    const float* x0 = x + row * channels;
    const float* x1 = x0 + channels;
    const float* x2 = x1 + channels;
    const float* x3 = x2 + channels;
    for (std::int64_t i = 0; i < channels; ++i) {
      const float d0 = x0[i] - origin[i];
      const float d1 = x1[i] - origin[i];
      const float d2 = x2[i] - origin[i];
      const float d3 = x3[i] - origin[i];
      sum[i] += (d0 + d1) + (d2 + d3);
      squares[i] += (d0 * d0 + d1 * d1) + (d2 * d2 + d3 * d3);
    }
  }
  for (; row < rows; ++row) {
    for (std::int64_t i = 0; i < channels; ++i) {
      const float d = x[row * channels + i] - origin[i];
      sum[i] += d;
      squares[i] += d * d;
    }
  }
}

RIFFLE_CLONES
void apply(const float* x, const float* __restrict residual, std::int64_t rows,
           std::int64_t channels, const float* __restrict scale, const float* __restrict shift,
           bool relu, float* y) {
  const float floor = relu ? 0.0f : -__builtin_inff();
  for (std::int64_t row = 0; row < rows; ++row) {
    const float* from = x + row * channels;
    float* to = y + row * channels;
    if (residual) {
      const float* add = residual + row * channels;
#pragma GCC ivdep
      for (std::int64_t i = 0; i < channels; ++i) {
        const float value = from[i] * scale[i] + shift[i] + add[i];
        to[i] = value < floor ? floor : value;
      }
    } else {
#pragma GCC ivdep
      for (std::int64_t i = 0; i < channels; ++i) {
        const float value = from[i] * scale[i] + shift[i];
        to[i] = value < floor ? floor : value;
      }
    }
  }
}

RIFFLE_CLONES
void add_gradients(const float* __restrict gy, const float* __restrict y, const float* __restrict x,
                   std::int64_t rows, std::int64_t channels, const float* __restrict mean,
                   float* __restrict sum, float* __restrict products, float* __restrict masked) {
  std::int64_t row = 0;
  for (; row + kRows <= rows; row += kRows) {
    const std::int64_t at0 = row * channels;
    const std::int64_t at1 = at0 + channels;
    const std::int64_t at2 = at1 + channels;
    const std::int64_t at3 = at2 + channels;
    if (!y) {
      for (std::int64_t i = 0; i < channels; ++i) {
        const float g0 = gy[at0 + i];
        const float g1 = gy[at1 + i];
        const float g2 = gy[at2 + i];
        const float g3 = gy[at3 + i];
        sum[i] += (g0 + g1) + (g2 + g3);
        products[i] += (g0 * (x[at0 + i] - mean[i]) + g1 * (x[at1 + i] - mean[i])) +
                       (g2 * (x[at2 + i] - mean[i]) + g3 * (x[at3 + i] - mean[i]));
      }
    } else if (!masked) {
      for (std::int64_t i = 0; i < channels; ++i) {
        const float g0 = where_positive(y[at0 + i], gy[at0 + i]);
        const float g1 = where_positive(y[at1 + i], gy[at1 + i]);
        const float g2 = where_positive(y[at2 + i], gy[at2 + i]);
        const float g3 = where_positive(y[at3 + i], gy[at3 + i]);
        sum[i] += (g0 + g1) + (g2 + g3);
        products[i] += (g0 * (x[at0 + i] - mean[i]) + g1 * (x[at1 + i] - mean[i])) +
                       (g2 * (x[at2 + i] - mean[i]) + g3 * (x[at3 + i] - mean[i]));
      }
    } else {
      for (std::int64_t i = 0; i < channels; ++i) {
        const float g0 = where_positive(y[at0 + i], gy[at0 + i]);
        const float g1 = where_positive(y[at1 + i], gy[at1 + i]);
        const float g2 = where_positive(y[at2 + i], gy[at2 + i]);
        const float g3 = where_positive(y[at3 + i], gy[at3 + i]);
        masked[at0 + i] = g0;
        masked[at1 + i] = g1;
        masked[at2 + i] = g2;
        masked[at3 + i] = g3;
        sum[i] += (g0 + g1) + (g2 + g3);
        products[i] += (g0 * (x[at0 + i] - mean[i]) + g1 * (x[at1 + i] - mean[i])) +
                       (g2 * (x[at2 + i] - mean[i]) + g3 * (x[at3 + i] - mean[i]));
      }
    }
  }
  for (; row < rows; ++row) {
    for (std::int64_t i = 0; i < channels; ++i) {
      const std::int64_t at = row * channels + i;
      const float g = y ? where_positive(y[at], gy[at]) : gy[at];
      if (masked) masked[at] = g;
      sum[i] += g;
      products[i] += g * (x[at] - mean[i]);
    }
  }
}

RIFFLE_CLONES
void apply_gradient(const float* __restrict gy, const float* __restrict y,
                    const float* __restrict x, std::int64_t rows, std::int64_t channels,
                    const float* __restrict mean, const float* __restrict a,
                    const float* __restrict b, const float* __restrict c, float* __restrict gx) {
  for (std::int64_t row = 0; row < rows; ++row) {
    const std::int64_t at = row * channels;
    if (y) {
      for (std::int64_t i = 0; i < channels; ++i) {
        const float g = where_positive(y[at + i], gy[at + i]);
        gx[at + i] = a[i] * g + (b[i] * (x[at + i] - mean[i]) + c[i]);
      }
    } else {
      for (std::int64_t i = 0; i < channels; ++i) {
        gx[at + i] = a[i] * gy[at + i] + (b[i] * (x[at + i] - mean[i]) + c[i]);
      }
    }
  }
}

}  // namespace riffle::batch_norm_kernel

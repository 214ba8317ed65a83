#include "riffle/model/slices.h"

#include <ATen/ATen.h>
#include <torch/types.h>
#include <torch/utils.h>

#include "riffle/base/error.h"
#include "riffle/base/text.h"
#include "riffle/tensors/unit_length.h"

namespace riffle {
namespace {

constexpr std::int64_t kLow32 = 0xffffffff;
// Factors below 2^31, so that products of 32-bit numbers stay within 63 bits.
constexpr std::int64_t kFactor1 = 0x21f0aaad;
constexpr std::int64_t kFactor2 = 0x735a2d97;

// A bijection of 32-bit numbers that looks random; the same for numbers of the host and of tensors.
std::uint32_t mixed(std::uint32_t x) {
  x ^= x >> 16;
  x *= static_cast<std::uint32_t>(kFactor1);
  x ^= x >> 15;
  x *= static_cast<std::uint32_t>(kFactor2);
  return x ^ (x >> 15);
}

torch::Tensor& xor_shifted(torch::Tensor& x, std::int64_t bits) {
  return x.bitwise_xor_(at::bitwise_right_shift(x, bits));
}

torch::Tensor mixed(torch::Tensor x) {
  xor_shifted(x, 16).mul_(kFactor1).bitwise_and_(kLow32);
  xor_shifted(x, 15).mul_(kFactor2).bitwise_and_(kLow32);
  return xor_shifted(x, 15);
}

}  // namespace

Slices::Slices(std::uint64_t seed, std::int64_t count, std::int64_t dim)
    : key_(mixed(mixed(static_cast<std::uint32_t>(seed)) ^ static_cast<std::uint32_t>(seed >> 32))),
      count_(count),
      dim_(dim),
      update_(register_buffer("update", torch::zeros({}, torch::kInt64))) {
  if (count > kLow32 / dim) {
    throw Error(cat(count, " slices of ", dim,
                    " channels are too many; together they must be less "
                    "than 2^32 numbers"));
  }
}

torch::Tensor Slices::draw() const {
  const torch::NoGradGuard no_gradient;
  const torch::Tensor key = mixed((update_ + static_cast<std::int64_t>(key_)).bitwise_and_(kLow32));
  torch::Tensor places =
      torch::arange(count_ * dim_, torch::dtype(torch::kInt64).device(update_.device()));
  const torch::Tensor bits = mixed(mixed(places).add_(key).bitwise_and_(kLow32));
  // 23 bits and a half are exact in float32: uniform within (-1, 1), the ends left out. The inverse
  // of the error function makes them normal, up to a factor.
  const torch::Tensor uniform =
      at::bitwise_right_shift(bits, 9).to(torch::kFloat32).add_(0.5).mul_(0x1p-22).sub_(1.0);
  return unit_length(uniform.erfinv_().view({count_, dim_}));
}

void Slices::advance() {
  const torch::NoGradGuard no_gradient;
  update_.add_(1);
}

}  // namespace riffle

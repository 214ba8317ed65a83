#include "riffle/tensors/unit_length.h"

#include <torch/types.h>

namespace riffle {

at::Tensor unit_length(const at::Tensor& rows) {
  constexpr double kShortest = 1e-12;
  return rows / rows.norm(2, /*dim=*/1, /*keepdim=*/true).clamp_min(kShortest);
}

at::Tensor with_direction(const at::Tensor& rows) {
  return rows + rows.eq(0).all(/*dim=*/1, /*keepdim=*/true);
}

}  // namespace riffle

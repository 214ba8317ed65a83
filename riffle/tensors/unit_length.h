// Features compare by direction: rows scaled to length 1.
#pragma once

#include <ATen/core/Tensor.h>

namespace riffle {

// Returns `rows` ([n, dim]) scaled to length 1; a row of zeros stays. Gradients flow through.
at::Tensor unit_length(const at::Tensor& rows);

}  // namespace riffle

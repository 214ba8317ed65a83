// Features compare by direction: rows scaled to length 1.
#pragma once

#include <ATen/core/Tensor.h>

namespace riffle {

// Returns `rows` ([n, dim]) scaled to length 1; a row of zeros stays. Gradients flow through.
at::Tensor unit_length(const at::Tensor& rows);

// Returns the rows with those of zeros, which point nowhere, replaced by one direction. A batch of
// black pictures, all the same to a network, has such features; they are as redundant as can be.
at::Tensor with_direction(const at::Tensor& rows);

}  // namespace riffle

// Pictures as tensors, and back.
#pragma once

#include <ATen/ATen.h>

#include "riffle/buffer/store.h"
#include "riffle/image/picture.h"

namespace riffle::python {

// Returns [height, width, 3] uint8; the tensor takes over the picture's memory.
at::Tensor tensor_of(Picture picture);
// Takes [height, width, 3] uint8, contiguous, on the CPU. Throws Error for another tensor.
Picture picture_of(const at::Tensor& tensor);

// Returns the pictures asked for as a tensor of their own, in the memory they are kept in.
at::Tensor gathered(const Pictures& pictures);

}  // namespace riffle::python

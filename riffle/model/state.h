// A module's weights as named tensors, and back.
#pragma once

#include <torch/nn/module.h>

#include "riffle/tensors/named_tensors.h"

namespace riffle {

// Returns parameters, then buffers, in the module's order, as copies on the CPU.
NamedTensors save_state(const torch::nn::Module& module);

// Copies the values into the module, wherever it lives. Throws Error, and changes nothing, unless
// the names and shapes are exactly the module's; the message names the first tensor that is
// missing, unexpected, repeated or of another shape.
void load_state(torch::nn::Module& module, const NamedTensors& state);

}  // namespace riffle

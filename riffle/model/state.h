// A module's weights as named tensors, and back.
#pragma once

#include <string>

#include <torch/nn/module.h>
#include <torch/types.h>

#include "riffle/base/named_tensors.h"

namespace riffle {

// Parameters, then buffers, in the module's order, copied to the CPU: later training does not
// change them.
NamedTensors save_state(const torch::nn::Module& module);

// Copies the values into the module, wherever it lives. Throws Error, and changes nothing, unless
// the names and shapes are exactly the module's; the message names the first tensor that is
// missing, unexpected, twice there or of another shape.
void load_state(torch::nn::Module& module, const NamedTensors& state);

// The same for any set of tensors: `what` says in the message whose they are.
void copy_named(const NamedTensors& from, const NamedTensors& to, const std::string& what);

}  // namespace riffle

// Tensors by name, in order: what weights and checkpoints are made of.
//
// This room knows nothing of LibTorch: who looks at the tensors includes its headers.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace at {
class Tensor;
}

namespace riffle {

using NamedTensors = std::vector<std::pair<std::string, at::Tensor>>;

}  // namespace riffle

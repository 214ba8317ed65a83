#include "riffle/model/state.h"

#include <torch/types.h>

namespace riffle {
namespace {

NamedTensors tensors_of(const torch::nn::Module& module) {
  NamedTensors tensors;
  for (const auto& item : module.named_parameters()) tensors.emplace_back(item.key(), item.value());
  for (const auto& item : module.named_buffers()) tensors.emplace_back(item.key(), item.value());
  return tensors;
}

}  // namespace

NamedTensors save_state(const torch::nn::Module& module) {
  return copies_on_cpu(tensors_of(module));
}

void load_state(torch::nn::Module& module, const NamedTensors& state) {
  copy_named(state, tensors_of(module), "the model");
}

}  // namespace riffle

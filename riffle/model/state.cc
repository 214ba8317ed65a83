#include "riffle/model/state.h"

#include <map>

#include <torch/nn/module.h>
#include <torch/types.h>
#include <torch/utils.h>

#include "riffle/base/error.h"
#include "riffle/base/text.h"

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
  NamedTensors state;
  for (const auto& [name, tensor] : tensors_of(module)) {
    state.emplace_back(name, tensor.detach().to(torch::kCPU, tensor.scalar_type(),
                                                /*non_blocking=*/false, /*copy=*/true));
  }
  return state;
}

void load_state(torch::nn::Module& module, const NamedTensors& state) {
  copy_named(state, tensors_of(module), "the model");
}

void copy_named(const NamedTensors& from, const NamedTensors& to, const std::string& what) {
  std::map<std::string, torch::Tensor> given;
  for (const auto& [name, tensor] : from) {
    if (!given.emplace(name, tensor).second)
      throw Error(cat("weights: '", name, "' is there twice"));
  }
  for (const auto& [name, tensor] : to) {
    const auto found = given.find(name);
    if (found == given.end()) throw Error(cat("weights: '", name, "' of ", what, " is missing"));
    if (found->second.sizes() != tensor.sizes()) {
      throw Error(cat("weights: '", name, "' has shape ", found->second.sizes(), "; ", what,
                      " needs ", tensor.sizes()));
    }
  }
  if (given.size() != to.size()) {
    std::map<std::string, torch::Tensor> unexpected = given;
    for (const auto& [name, tensor] : to) unexpected.erase(name);
    throw Error(cat("weights: '", unexpected.begin()->first, "' is no part of ", what));
  }
  const torch::NoGradGuard no_gradient;
  for (const auto& [name, tensor] : to) torch::Tensor(tensor).copy_(given[name]);
}

}  // namespace riffle

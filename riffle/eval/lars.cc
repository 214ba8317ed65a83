#include "riffle/eval/lars.h"

#include <torch/types.h>
#include <torch/utils.h>

#include "riffle/base/text.h"

namespace riffle {

Lars::Lars(NamedTensors parameters, LarsOptions options)
    : parameters_(std::move(parameters)), options_(options) {
  const torch::NoGradGuard no_gradient;
  for (const auto& [name, parameter] : parameters_) {
    momenta_.emplace_back(name, torch::zeros_like(parameter));
  }
}

void Lars::step(double lr) {
  const torch::NoGradGuard no_gradient;
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    auto& [name, parameter] = parameters_[i];
    torch::Tensor& momentum = momenta_[i].second;
    const torch::Tensor& gradient = parameter.grad();
    if (!gradient.defined()) throw std::logic_error(cat("parameter '", name, "' has no gradient"));
    const torch::Tensor weight_norm = parameter.norm();
    const torch::Tensor gradient_norm = gradient.norm();
    // The choice is made by the device, so that a GPU need not stop for it.
    const torch::Tensor scale = torch::where((weight_norm > 0).logical_and(gradient_norm > 0),
                                             weight_norm / gradient_norm * options_.trust, 1.0);
    momentum.mul_(options_.momentum).addcmul_(gradient, scale);
    parameter.add_(momentum, -lr);
  }
}

void Lars::zero_grad() {
  for (auto& [name, parameter] : parameters_) parameter.mutable_grad().reset();
}

}  // namespace riffle

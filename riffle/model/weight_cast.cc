#include "riffle/model/weight_cast.h"

#include <torch/autograd.h>
#include <torch/types.h>
#include <torch/utils.h>

namespace riffle {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

std::vector<torch::Tensor> cast_all(torch::TensorList tensors, torch::ScalarType type) {
  std::vector<torch::Tensor> casts;
  casts.reserve(tensors.size());
  for (const torch::Tensor& tensor : tensors) {
    casts.push_back(torch::empty_like(tensor, tensor.options().dtype(type)));
  }
  at::_foreach_copy_(casts, tensors);
  return casts;
}

struct CastAll : torch::autograd::Function<CastAll> {
  static variable_list forward(AutogradContext* context, torch::TensorList weights,
                               torch::ScalarType type) {
    context->saved_data["type"] = weights.front().scalar_type();
    return cast_all(weights, type);
  }
  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    variable_list casts = cast_all(gradients, context->saved_data["type"].toScalarType());
    casts.emplace_back();  // of the type
    return casts;
  }
};

thread_local WeightCast* current = nullptr;

}  // namespace

WeightCast::WeightCast(const std::vector<torch::Tensor>& weights, torch::ScalarType type,
                       std::int64_t most)
    : outer_(current), type_(type), with_gradient_(torch::GradMode::is_enabled()) {
  current = this;
  if (weights.empty() || weights.front().scalar_type() == type) return;
  std::int64_t numbers = 0;
  for (const torch::Tensor& weight : weights) {
    if (parts_.empty() || weight.numel() > most - numbers) {
      parts_.emplace_back();
      numbers = 0;
    }
    numbers += weight.numel();
    auto& together = parts_.back().weights;
    places_.emplace(weight.unsafeGetTensorImpl(), Place{parts_.size() - 1, together.size()});
    together.push_back(weight);
  }
  if (parts_.size() == 1) make(parts_.front());
}

void WeightCast::make(Together& part) const {
  const torch::AutoGradMode mode(with_gradient_);
  part.casts = CastAll::apply(torch::TensorList(part.weights), type_);
}

WeightCast::~WeightCast() { current = outer_; }

torch::Tensor WeightCast::find(const torch::Tensor& weight, torch::ScalarType type) {
  const auto found = places_.find(weight.unsafeGetTensorImpl());
  if (found == places_.end() || type != type_) return {};
  Together& part = parts_[found->second.part];
  if (part.casts.empty()) make(part);
  return part.casts[found->second.index];
}

torch::Tensor in_type(const torch::Tensor& weight, torch::ScalarType type) {
  if (weight.scalar_type() == type) return weight;
  const torch::Tensor cast = current == nullptr ? torch::Tensor() : current->find(weight, type);
  return cast.defined() ? cast : weight.to(type);
}

}  // namespace riffle

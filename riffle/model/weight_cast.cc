#include "riffle/model/weight_cast.h"

#include <torch/autograd.h>
#include <torch/types.h>

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

WeightCast::WeightCast(const std::vector<torch::Tensor>& weights, torch::ScalarType type)
    : outer_(current) {
  current = this;
  if (weights.empty() || weights.front().scalar_type() == type) return;
  const variable_list casts = CastAll::apply(torch::TensorList(weights), type);
  for (std::size_t i = 0; i < weights.size(); ++i) {
    casts_.emplace(weights[i].unsafeGetTensorImpl(), casts[i]);
  }
}

WeightCast::~WeightCast() { current = outer_; }

torch::Tensor WeightCast::find(const torch::Tensor& weight, torch::ScalarType type) const {
  const auto found = casts_.find(weight.unsafeGetTensorImpl());
  const bool here = found != casts_.end() && found->second.scalar_type() == type;
  return here ? found->second : torch::Tensor();
}

torch::Tensor in_type(const torch::Tensor& weight, torch::ScalarType type) {
  if (weight.scalar_type() == type) return weight;
  const torch::Tensor cast = current == nullptr ? torch::Tensor() : current->find(weight, type);
  return cast.defined() ? cast : weight.to(type);
}

}  // namespace riffle

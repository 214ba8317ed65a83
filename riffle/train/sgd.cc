#include "riffle/train/sgd.h"

#include <unordered_set>

#include <torch/types.h>
#include <torch/utils.h>

#include "riffle/base/text.h"
#include "riffle/model/moving_average.h"

namespace riffle {
namespace {

// The fused update walks through memory, so a gradient must lie there in the order of its
// parameter. Autograd arranges that as a rule; this is for the exceptions.
torch::Tensor laid_out_like(const torch::Tensor& parameter, const torch::Tensor& gradient) {
  if (gradient.strides() == parameter.strides()) return gradient;
  return torch::empty_like(parameter).copy_(gradient);
}

}  // namespace

Sgd::Sgd(const torch::nn::Module& module, const std::vector<torch::Tensor>& predictor,
         const TrainConfig& config)
    : momentum_(config.momentum), weight_decay_(config.weight_decay) {
  std::unordered_set<const void*> own_rate;
  for (const torch::Tensor& parameter : predictor) {
    own_rate.insert(parameter.unsafeGetTensorImpl());
  }
  std::unordered_set<const void*> follow;
  for (const auto& average : moving_averages(module)) {
    for (const torch::Tensor& copy : average->parameters()) {
      follow.insert(copy.unsafeGetTensorImpl());
    }
  }
  for (const auto& item : module.named_parameters()) {
    if (follow.contains(item.value().unsafeGetTensorImpl())) continue;
    const bool predicts = own_rate.contains(item.value().unsafeGetTensorImpl());
    Group& group = groups_[predicts ? kPredictor : kScheduled];
    group.names.push_back(item.key());
    group.parameters.push_back(item.value());
  }
}

void Sgd::step(double lr, double predictor_lr) {
  update(groups_[kScheduled], lr);
  update(groups_[kPredictor], predictor_lr);
}

void Sgd::step(const torch::Tensor& lr, const torch::Tensor& predictor_lr) {
  update(groups_[kScheduled], lr);
  update(groups_[kPredictor], predictor_lr);
}

template <typename Rate>
void Sgd::update(Group& group, const Rate& lr) {
  const torch::NoGradGuard no_gradient;
  if (group.momenta.empty()) momenta();
  std::vector<torch::Tensor> parameters, gradients, used_momenta;
  for (std::size_t i = 0; i < group.parameters.size(); ++i) {
    const torch::Tensor& parameter = group.parameters[i];
    if (!parameter.requires_grad()) continue;
    if (!parameter.grad().defined()) {
      throw std::logic_error(cat("parameter '", group.names[i], "' has no gradient"));
    }
    parameters.push_back(parameter);
    gradients.push_back(laid_out_like(parameter, parameter.grad()));
    // Momenta start at zero, so the first step is like the others. Without momentum the operation
    // takes no buffers.
    if (momentum_ != 0.0) used_momenta.push_back(group.momenta[i]);
  }
  if (parameters.empty()) return;
  at::_fused_sgd_(parameters, gradients, used_momenta, weight_decay_, momentum_, lr,
                  /*dampening=*/0.0, /*nesterov=*/false, /*maximize=*/false,
                  /*is_first_step=*/false);
  for (torch::Tensor& parameter : parameters) parameter.mutable_grad().reset();
}

NamedTensors Sgd::momenta() {
  const torch::NoGradGuard no_gradient;
  NamedTensors named;
  for (Group& group : groups_) {
    for (std::size_t i = 0; i < group.names.size(); ++i) {
      if (i == group.momenta.size()) {
        group.momenta.push_back(torch::zeros_like(group.parameters[i]));
      }
      named.emplace_back(group.names[i], group.momenta[i]);
    }
  }
  return named;
}

NamedTensors Sgd::state() { return copies_on_cpu(momenta()); }

void Sgd::load_state(const NamedTensors& state) { copy_named(state, momenta(), "the optimiser"); }

}  // namespace riffle

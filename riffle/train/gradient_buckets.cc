#include "riffle/train/gradient_buckets.h"

#include <memory>
#include <utility>

#include <torch/autograd.h>
#include <torch/types.h>

namespace riffle {
namespace {

class CallWhenAccumulated : public torch::autograd::PostAccumulateGradHook {
 public:
  explicit CallWhenAccumulated(std::function<void()> call) : call_(std::move(call)) {}
  void operator()(const torch::Tensor&) override { call_(); }

 private:
  std::function<void()> call_;
};

void call_when_accumulated(const torch::Tensor& parameter, std::function<void()> call) {
  torch::autograd::impl::set_post_acc_grad_hooks(
      parameter, call ? std::make_unique<CallWhenAccumulated>(std::move(call)) : nullptr);
}

}  // namespace

GradientBuckets::GradientBuckets(std::vector<torch::Tensor> parameters, std::int64_t most,
                                 Ready ready)
    : parameters_(std::move(parameters)), most_(most), ready_(std::move(ready)) {}

GradientBuckets::~GradientBuckets() {
  for (const torch::Tensor& parameter : parameters_) call_when_accumulated(parameter, nullptr);
}

void GradientBuckets::fill() {
  buckets_.clear();
  // Backward passes reach the last parameters first.
  for (std::size_t i = parameters_.size(); i-- > 0;) {
    const torch::Tensor& parameter = parameters_[i];
    if (!learns_[i]) {
      call_when_accumulated(parameter, nullptr);
      continue;
    }
    const std::int64_t count = parameter.numel();
    if (buckets_.empty() || buckets_.back().numbers + count > most_) buckets_.emplace_back();
    Bucket& bucket = buckets_.back();
    bucket.parameters.push_back(parameter);
    bucket.numbers += count;
    call_when_accumulated(parameter, [this, index = buckets_.size() - 1] { take(index); });
  }
}

bool GradientBuckets::begin() {
  std::vector<bool> learns;
  for (const torch::Tensor& parameter : parameters_) learns.push_back(parameter.requires_grad());
  const bool changed = learns != learns_;
  learns_ = std::move(learns);
  if (changed) fill();
  for (Bucket& bucket : buckets_) bucket.missing = std::ssize(bucket.parameters);
  return changed;
}

void GradientBuckets::take(std::size_t index) {
  const torch::NoGradGuard no_gradient;
  const bool complete = --buckets_[index].missing == 0;
  ready_(complete ? std::optional(index) : std::nullopt);
}

void GradientBuckets::finish() {
  const torch::NoGradGuard no_gradient;
  for (std::size_t i = 0; i < buckets_.size(); ++i) {
    if (std::exchange(buckets_[i].missing, 0) > 0) ready_(i);
  }
}

}  // namespace riffle

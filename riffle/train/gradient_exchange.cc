#include "riffle/train/gradient_exchange.h"

#include <ATen/ATen.h>
#include <torch/types.h>
#include <torch/utils.h>

namespace riffle {
namespace {

// Large enough that the time until the first byte of an exchange arrives does not matter, small
// enough that the first exchange begins early.
constexpr std::int64_t kBucketFloats = 1 << 20;

// Calls use(parameter, part) for each parameter of a bucket, with its part of the bucket's values,
// laid out as the parameter is.
template <typename Use>
void for_each_part(const GradientBuckets::Bucket& bucket, const at::Tensor& values,
                   const Use& use) {
  std::int64_t offset = 0;
  for (const torch::Tensor& parameter : bucket.parameters) {
    use(parameter, values.as_strided(parameter.sizes(), parameter.strides(), offset));
    offset += parameter.numel();
  }
}

}  // namespace

std::vector<torch::Tensor> own_statistics(const Objective& objective) {
  if (objective.has_shared_statistics()) return {};
  std::vector<torch::Tensor> statistics;
  for (const torch::Tensor& buffer : objective.buffers()) {
    if (buffer.is_floating_point()) statistics.push_back(buffer);
  }
  return statistics;
}

GradientExchange::GradientExchange(Objective& objective, Ranks& ranks)
    : objective_(objective),
      ranks_(ranks),
      buckets_(ranks.alone() ? std::vector<torch::Tensor>() : objective.parameters(), kBucketFloats,
               [this](std::optional<std::size_t> complete) { take(complete); }) {}

void GradientExchange::begin() {
  if (!buckets_.begin()) return;
  collected_.clear();
  for (const auto& bucket : buckets_.buckets()) {
    collected_.push_back({.values = at::empty({bucket.numbers}), .sum = nullptr});
  }
}

void GradientExchange::take(std::optional<std::size_t> complete) {
  if (complete) {
    Collected& collected = collected_[*complete];
    for_each_part(buckets_.buckets()[*complete], collected.values,
                  [](const torch::Tensor& parameter, at::Tensor part) {
                    if (parameter.grad().defined()) {
                      part.copy_(parameter.grad());
                    } else {
                      part.zero_();  // backward() did not reach it, on any rank
                    }
                  });
    collected.sum = ranks_.begin_sum(collected.values);
  }
  // MPI may only make progress when it is called.
  for (Collected& other : collected_) {
    if (other.sum) other.sum->done();
  }
}

void GradientExchange::finish() {
  if (ranks_.alone()) return;
  const torch::NoGradGuard no_gradient;
  buckets_.finish();
  for (std::size_t i = 0; i < collected_.size(); ++i) {
    Collected& collected = collected_[i];
    collected.sum->wait();
    collected.sum.reset();
    collected.values.div_(ranks_.size());
    for_each_part(buckets_.buckets()[i], collected.values,
                  [](const torch::Tensor& parameter, const at::Tensor& part) {
                    at::Tensor& gradient = parameter.mutable_grad();
                    if (!gradient.defined()) return;
                    if (gradient.is_cpu()) {
                      gradient = part;
                    } else {
                      gradient.copy_(part);
                    }
                  });
  }
  ranks_.average(own_statistics(objective_));
}

}  // namespace riffle

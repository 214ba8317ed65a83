#include "riffle/train/gradient_exchange.h"

#include <algorithm>

#include <ATen/ATen.h>
#include <torch/types.h>
#include <torch/utils.h>

namespace riffle {
namespace {

// Large enough that the time until the first byte of an exchange arrives does not matter, small
// enough that the first exchange begins early.
constexpr std::int64_t kBucketFloats = 1 << 20;

}  // namespace

GradientExchange::GradientExchange(Objective& objective, Ranks& ranks)
    : objective_(objective), ranks_(ranks) {
  if (ranks.alone()) return;
  for (const torch::Tensor& tensor : objective.parameters()) {
    parameters_.push_back({.tensor = tensor});
  }
}

GradientExchange::~GradientExchange() {
  for (const Parameter& parameter : parameters_) {
    if (parameter.hook) parameter.tensor.remove_hook(*parameter.hook);
  }
}

void GradientExchange::fill_buckets() {
  buckets_.clear();
  // Backward passes reach the last parameters first.
  for (std::size_t i = parameters_.size(); i-- > 0;) {
    Parameter& parameter = parameters_[i];
    parameter.learns = parameter.tensor.requires_grad();
    if (!parameter.learns) continue;
    if (!parameter.hook) {
      // The vector of parameters never changes.
      parameter.hook = parameter.tensor.register_hook(
          [this, &parameter](const at::Tensor& gradient) { take(parameter, gradient); });
    }
    const std::int64_t count = parameter.tensor.numel();
    if (buckets_.empty() || buckets_.back().size + count > kBucketFloats) buckets_.emplace_back();
    Bucket& bucket = buckets_.back();
    parameter.bucket = buckets_.size() - 1;
    parameter.offset = bucket.size;
    bucket.size += count;
    ++bucket.parameters;
  }
  for (Bucket& bucket : buckets_) bucket.values = at::empty({bucket.size});
}

// The part of its bucket, laid out as the parameter is.
at::Tensor GradientExchange::collected(const Parameter& parameter) const {
  return buckets_[parameter.bucket].values.as_strided(parameter.tensor.sizes(),
                                                      parameter.tensor.strides(), parameter.offset);
}

void GradientExchange::begin() {
  const auto changed = [](const Parameter& parameter) {
    return parameter.learns != parameter.tensor.requires_grad();
  };
  if (std::ranges::any_of(parameters_, changed)) fill_buckets();
  for (Parameter& parameter : parameters_) parameter.ready = false;
  for (Bucket& bucket : buckets_) bucket.missing = bucket.parameters;
}

void GradientExchange::take(Parameter& parameter, const at::Tensor& gradient) {
  const torch::NoGradGuard no_gradient;
  collected(parameter).copy_(gradient);
  parameter.ready = true;
  Bucket& bucket = buckets_[parameter.bucket];
  if (--bucket.missing == 0) bucket.sum = ranks_.begin_sum(bucket.values);
  // MPI may only make progress when it is called.
  for (Bucket& other : buckets_) {
    if (other.sum) other.sum->done();
  }
}

void GradientExchange::finish() {
  if (ranks_.alone()) return;
  const torch::NoGradGuard no_gradient;
  for (Parameter& parameter : parameters_) {
    // backward() did not reach it, on any rank.
    if (parameter.learns && !parameter.ready) collected(parameter).zero_();
  }
  for (Bucket& bucket : buckets_) {
    if (!bucket.sum) bucket.sum = ranks_.begin_sum(bucket.values);
  }
  for (Bucket& bucket : buckets_) {
    bucket.sum->wait();
    bucket.sum.reset();
    bucket.values.div_(ranks_.size());
  }
  for (Parameter& parameter : parameters_) {
    if (!parameter.ready) continue;
    at::Tensor& gradient = parameter.tensor.mutable_grad();
    if (gradient.is_cpu()) {
      gradient = collected(parameter);
    } else {
      gradient.copy_(collected(parameter));
    }
  }
  if (!objective_.has_shared_statistics()) average_statistics();
}

void GradientExchange::average_statistics() {
  std::vector<at::Tensor> statistics;
  std::vector<at::Tensor> flat;
  for (const at::Tensor& buffer : objective_.buffers()) {
    if (!buffer.is_floating_point()) continue;
    statistics.push_back(buffer);
    flat.push_back(buffer.flatten());
  }
  if (flat.empty()) return;
  const at::Tensor mean = ranks_.sum(at::cat(flat)).div_(ranks_.size());
  std::int64_t offset = 0;
  for (at::Tensor& buffer : statistics) {
    buffer.copy_(mean.narrow(0, offset, buffer.numel()).view(buffer.sizes()));
    offset += buffer.numel();
  }
}

}  // namespace riffle

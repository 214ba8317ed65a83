#include "riffle/train/gradient_exchange_gpu.h"

#include <c10/cuda/CUDAGuard.h>
#include <torch/types.h>
#include <torch/utils.h>

#include "riffle/train/gradient_exchange.h"

namespace riffle {
namespace {

std::vector<torch::Tensor> gradients_of(const GradientBuckets::Bucket& bucket) {
  std::vector<torch::Tensor> gradients;
  for (const torch::Tensor& parameter : bucket.parameters) {
    if (parameter.grad().defined()) gradients.push_back(parameter.grad());
  }
  return gradients;
}

}  // namespace

// Exchanges are few and others wait for them: they go before kernels that are ready too.
GradientExchangeGpu::GradientExchangeGpu(Objective& objective, Ranks& ranks)
    : objective_(objective),
      ranks_(ranks),
      share_(torch::full({}, 1.0 / ranks.size(), torch::kCUDA)),
      side_(c10::cuda::getStreamFromPool(/*isHighPriority=*/true)),
      buckets_(objective.parameters(), kGradientsTogether,
               [this](std::optional<std::size_t> complete) {
                 if (!complete) return;
                 beside([&] { ranks_.add_up(gradients_of(buckets_.buckets()[*complete])); });
               }) {}

// Queues an exchange beside the current stream, after what that has queued so far.
template <typename Exchange>
void GradientExchangeGpu::beside(const Exchange& exchange) {
  before_.record(c10::cuda::getCurrentCUDAStream());
  before_.block(side_);
  const c10::cuda::CUDAStreamGuard guard(side_);
  exchange();
}

void GradientExchangeGpu::begin(const torch::Tensor& also) {
  const torch::NoGradGuard no_gradient;
  buckets_.begin();
  beside([&] {
    std::vector<torch::Tensor> values = own_statistics(objective_);
    values.push_back(also);
    ranks_.average(values);
  });
}

void GradientExchangeGpu::finish() {
  buckets_.finish();
  after_.record(side_);
  after_.block(c10::cuda::getCurrentCUDAStream());
}

}  // namespace riffle

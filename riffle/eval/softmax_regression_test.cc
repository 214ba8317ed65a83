#include "riffle/eval/softmax_regression.h"

#include <gtest/gtest.h>
#include <torch/nn/functional/loss.h>
#include <torch/types.h>

#include "riffle/eval/testing/clusters.h"

namespace riffle {
namespace {

at::Tensor standardised(const at::Tensor& rows) {
  return (rows - rows.mean(0)) / rows.std(0, /*unbiased=*/false);
}

// The objective as the header has it, straight from its definition.
torch::Tensor objective(const at::Tensor& rows, const at::Tensor& classes,
                        const torch::Tensor& weight, const torch::Tensor& bias, double penalty) {
  return torch::nn::functional::cross_entropy(torch::addmm(bias, rows, weight.t()), classes) +
         penalty / 2 * weight.square().sum();
}

TEST(SoftmaxRegression, IsWhereTheObjectiveIsFlat) {
  const auto clusters = make_clusters(600, 12, 5, 2.0f, 1, 1);
  // Channels of very different size, and two that say nearly the same.
  at::Tensor features = clusters.features.to(torch::kFloat64) * torch::logspace(-2, 2, 12);
  features.select(1, 3).mul_(0.05).add_(features.select(1, 4));
  for (const double penalty : {1e-3, 1e-1}) {
    const auto fitted = softmax_regression(features, clusters.classes, 5, penalty);
    const at::Tensor rows = standardised(features);
    const at::Tensor scale = features.std(0, /*unbiased=*/false);
    const auto at_solution = [&](double share) {
      torch::Tensor weight = (share * fitted.weight * scale).requires_grad_();
      torch::Tensor bias =
          (share * (fitted.bias + fitted.weight.mv(features.mean(0)))).requires_grad_();
      const torch::Tensor value = objective(rows, clusters.classes, weight, bias, penalty);
      value.backward();
      return std::pair{value.item<double>(), std::max(weight.grad().abs().max().item<double>(),
                                                      bias.grad().abs().max().item<double>())};
    };
    const auto [value, slope] = at_solution(1);
    EXPECT_LT(slope, 2e-3 * at_solution(0).second) << penalty;
    EXPECT_LT(value, at_solution(0.95).first);
    EXPECT_LT(value, at_solution(1.05).first);
    EXPECT_LT(fitted.steps, 400);
  }
}

TEST(SoftmaxRegression, TakesThePenaltyThatServesUnseenRowsBest) {
  // Few rows, many channels that mean nothing: almost no penalty learns them by heart.
  auto train = make_clusters(500, 8, 4, 1.5f, 1, 1);
  Random random(3, Purpose("test"), 0);
  at::Tensor noise = torch::empty({500, 350});
  for (std::int64_t i = 0; i < noise.numel(); ++i) noise.data_ptr<float>()[i] = random.normal();
  train.features = torch::cat({train.features, noise}, 1);
  for (const auto& penalties : {std::vector{1e-7, 0.3}, std::vector{0.3, 1e-7}}) {
    const auto chosen = softmax_regression(train.features, train.classes, 4, penalties);
    EXPECT_EQ(chosen.penalty, 0.3);
    const auto only = softmax_regression(train.features, train.classes, 4, 0.3);
    EXPECT_TRUE(chosen.weight.equal(only.weight));
  }
}

}  // namespace
}  // namespace riffle

#include "riffle/eval/lars.h"

#include <cmath>
#include <vector>

#include <gtest/gtest.h>
#include <torch/types.h>
#include <torch/utils.h>

namespace riffle {
namespace {

torch::Tensor leaf(std::vector<float> values) { return torch::tensor(values).requires_grad_(); }

void set_gradient(torch::Tensor& parameter, std::vector<float> values) {
  parameter.mutable_grad() = torch::tensor(values);
}

TEST(Lars, ScalesAGradientToTheTrustedShareOfTheWeight) {
  torch::Tensor weight = leaf({3.0f, 4.0f});
  Lars lars({{"weight", weight}});
  set_gradient(weight, {0.0f, 20.0f});
  lars.step(2.0);
  // |w| = 5, |g| = 20: the gradient is scaled by 0.001 * 5 / 20.
  EXPECT_TRUE(torch::allclose(weight, torch::tensor({3.0f, 4.0f - 2.0f * 0.005f})));
  // |w| = 4.992..., |g| = 1; momentum 0.9 of the first, at the new rate.
  const float norm = std::sqrt(9.0f + 3.99f * 3.99f);
  set_gradient(weight, {1.0f, 0.0f});
  lars.step(1.0);
  EXPECT_TRUE(
      torch::allclose(weight, torch::tensor({3.0f - 0.001f * norm, 3.99f - 0.9f * 0.005f})));
}

TEST(Lars, TakesTheGradientAsItIsWhereANormIsZero) {
  torch::Tensor weight = leaf({0.0f, 0.0f});
  torch::Tensor still = leaf({1.0f});
  Lars lars({{"weight", weight}, {"still", still}});
  set_gradient(weight, {1.0f, -2.0f});
  set_gradient(still, {0.0f});
  lars.step(0.5);
  EXPECT_TRUE(torch::allclose(weight, torch::tensor({-0.5f, 1.0f})));
  EXPECT_FLOAT_EQ(still.item<float>(), 1.0f);
}

TEST(Lars, DropsGradientsAndMissesThem) {
  torch::Tensor weight = leaf({1.0f});
  Lars lars({{"weight", weight}});
  set_gradient(weight, {1.0f});
  lars.zero_grad();
  EXPECT_FALSE(weight.grad().defined());
  EXPECT_THROW(lars.step(1.0), std::logic_error);
}

}  // namespace
}  // namespace riffle

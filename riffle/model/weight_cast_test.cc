#include "riffle/model/weight_cast.h"

#include <gtest/gtest.h>
#include <torch/types.h>

namespace riffle {
namespace {

TEST(WeightCast, GivesWhatCastsOneByOneGiveForwardAndBackward) {
  std::vector<torch::Tensor> weights;
  for (const std::int64_t n : {3, 5}) {
    weights.push_back(
        torch::randn({n, 4, 3, 3}).contiguous(torch::MemoryFormat::ChannelsLast).requires_grad_());
  }
  std::vector<torch::Tensor> gradients[2];
  torch::Tensor sums[2];
  for (const bool together : {false, true}) {
    const WeightCast cast(together ? weights : std::vector<torch::Tensor>(), torch::kBFloat16);
    torch::Tensor sum = torch::zeros({});
    for (const torch::Tensor& weight : weights) {
      const torch::Tensor used = in_type(weight, torch::kBFloat16);
      ASSERT_EQ(used.scalar_type(), torch::kBFloat16);
      EXPECT_EQ(used.strides(), weight.strides());
      sum = sum + (used * used * 0.5).sum().to(torch::kFloat32);
    }
    sum.backward();
    sums[together] = sum.detach();
    for (torch::Tensor& weight : weights) {
      gradients[together].push_back(weight.grad().clone());
      EXPECT_EQ(weight.grad().scalar_type(), torch::kFloat32);
      weight.mutable_grad().reset();
    }
  }
  EXPECT_TRUE(sums[0].equal(sums[1]));
  for (std::size_t i = 0; i < weights.size(); ++i) {
    EXPECT_TRUE(gradients[0][i].equal(gradients[1][i]));
  }
}

TEST(WeightCast, InPartsGivesTheGradientsOfThoseWhoseUsersAreDone) {
  std::vector<torch::Tensor> weights;
  for (const std::int64_t n : {2, 3, 4}) weights.push_back(torch::randn({n, 2}).requires_grad_());
  std::vector<int> order;
  for (int i = 0; i < 3; ++i) {
    weights[static_cast<std::size_t>(i)].register_hook(
        [&order, i](const torch::Tensor&) { order.push_back(i); });
  }
  for (const std::int64_t most : {1, 8, 10, 1000}) {
    const WeightCast cast(weights, torch::kBFloat16, most);
    torch::Tensor value = torch::ones({1}, torch::kBFloat16);
    for (const torch::Tensor& weight : weights) {
      value = (in_type(weight, torch::kBFloat16) * value).sum();
    }
    order.clear();
    value.backward();
    ASSERT_EQ(order.size(), 3u);
    // What is used last has its gradient first, alone or with those that it was cast with.
    EXPECT_TRUE(most == 1000 || order.front() == 2) << most;
    EXPECT_TRUE(most > 8 || (order[1] == 1 && order[2] == 0)) << most;
    for (torch::Tensor& weight : weights) {
      EXPECT_TRUE(weight.grad().defined());
      weight.mutable_grad().reset();
    }
  }
}

TEST(WeightCast, EndsWithItsScopeAndLeavesTheWeightsOwnTypeAlone) {
  const torch::Tensor weight = torch::randn({2, 2});
  EXPECT_TRUE(in_type(weight, torch::kFloat32).is_same(weight));
  torch::Tensor cast;
  {
    const WeightCast outer({weight}, torch::kBFloat16);
    cast = in_type(weight, torch::kBFloat16);
    EXPECT_TRUE(in_type(weight, torch::kBFloat16).is_same(cast));
    { const WeightCast inner({}, torch::kBFloat16); }
    EXPECT_TRUE(in_type(weight, torch::kBFloat16).is_same(cast));
    EXPECT_EQ(in_type(weight, torch::kDouble).scalar_type(), torch::kDouble);
  }
  EXPECT_FALSE(in_type(weight, torch::kBFloat16).is_same(cast));
}

}  // namespace
}  // namespace riffle

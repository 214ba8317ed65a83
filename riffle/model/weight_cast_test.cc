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

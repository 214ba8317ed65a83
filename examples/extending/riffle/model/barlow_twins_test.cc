#include "riffle/model/barlow_twins.h"

#include <gtest/gtest.h>
#include <torch/types.h>

#include "riffle/model/testing/random_pictures.h"

namespace riffle {
namespace {

const ModelConfig kSmall{
    .arch = Arch::resnet10, .stem = Stem::stride2, .width = 8, .projector_out = 16};

torch::Tensor pictures(std::int64_t count, std::uint64_t position) {
  return random_pictures(count, position, /*size=*/16);
}

TEST(BarlowTwins, GivesFeaturesOfUnitLengthAndAGradientToEveryParameter) {
  BarlowTwins objective(kSmall, 1);
  const ObjectiveOutput out = objective.forward(pictures(16, 0));
  EXPECT_EQ(out.features.sizes(), (std::vector<std::int64_t>{8, 16}));
  EXPECT_FALSE(out.features.requires_grad());
  EXPECT_TRUE(torch::allclose(out.features.norm(2, 1), torch::ones({8})));
  EXPECT_FALSE(out.std.requires_grad());
  EXPECT_GT(out.std.item<float>(), 0.5f);
  out.loss.backward();
  for (const auto& item : objective.named_parameters()) {
    EXPECT_TRUE(item.value().grad().defined()) << item.key();
  }
}

TEST(BarlowTwins, EqualViewsLeaveNothingButRedundancy) {
  const torch::Tensor views = pictures(32, 0);
  const auto loss_of = [](const torch::Tensor& first, const torch::Tensor& second) {
    return BarlowTwins(kSmall, 1).forward(torch::cat({first, second})).loss.item<float>();
  };
  EXPECT_LT(loss_of(views, views), 0.1f);
  EXPECT_GT(loss_of(views, pictures(32, 1)), 0.5f);
}

TEST(BarlowTwins, FeaturesOnArrivalDoNotDependOnTheRestOfTheBatch) {
  BarlowTwins objective(kSmall, 1);
  objective.forward(pictures(16, 2));  // running statistics of some data
  const torch::Tensor all = objective.features(pictures(4, 0));
  const torch::Tensor one = objective.features(pictures(4, 0).slice(0, 1, 2));
  EXPECT_TRUE(torch::allclose(all.slice(0, 1, 2), one, 1e-4, 1e-5));
}

// Nothing in barlow_twins.cc is about any of these: all methods share them.
TEST(BarlowTwins, ComputesInBfloat16GrowsAndCountsBatches) {
  ModelConfig config = kSmall;
  config.arch = Arch::resnet18;
  config.grow_every = 10;
  BarlowTwins objective(config, 1);
  const ObjectiveOutput out = objective.forward(pictures(16, 0).to(torch::kBFloat16));
  EXPECT_EQ(out.loss.scalar_type(), torch::kFloat32);
  out.loss.backward();
  const auto parameters = objective.named_parameters();
  EXPECT_EQ(parameters["encoder.conv1.weight"].grad().scalar_type(), torch::kFloat32);
  EXPECT_FALSE(parameters["encoder.layer4.1.conv1.weight"].requires_grad());
  EXPECT_TRUE(objective.advance_to(10));
  EXPECT_TRUE(parameters["encoder.layer4.1.conv1.weight"].requires_grad());
  const auto counts = objective.named_buffers();
  EXPECT_EQ(counts["projector.1.num_batches_tracked"].item<std::int64_t>(), 2);
}

}  // namespace
}  // namespace riffle

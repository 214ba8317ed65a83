#include "riffle/model/byol.h"

#include <string>

#include <gtest/gtest.h>
#include <torch/types.h>
#include <torch/utils.h>

#include "riffle/base/error.h"
#include "riffle/base/testing/temp_folder.h"
#include "riffle/model/encoder_weights.h"
#include "riffle/model/testing/random_pictures.h"

namespace riffle {
namespace {

const ModelConfig kSmallByol{.objective = "byol",
                             .arch = Arch::resnet10,
                             .stem = Stem::stride2,
                             .width = 8,
                             .projector_out = 32,
                             .predictor_hidden = 16,
                             .ema = 0.75};

// Calls `check` with the weights and with their averages, by name.
template <typename Check>
void for_each_pair(const Objective& objective, const Check& check) {
  const auto parameters = objective.named_parameters();
  std::size_t pairs = 0;
  for (const auto& item : parameters) {
    if (!item.key().starts_with("target.")) continue;
    const std::string name = item.key().substr(std::string("target.").size());
    check(name, parameters[name].detach(), item.value());
    ++pairs;
  }
  EXPECT_GT(pairs, 20u);
}

void disturb(Objective& objective) {
  const torch::NoGradGuard no_gradient;
  for (auto& item : objective.named_parameters()) {
    if (!item.key().starts_with("target.")) item.value().add_(0.5);
  }
}

TEST(Byol, TheTargetBeginsAsTheNetworkAndFollowsIt) {
  const auto objective = make_objective(kSmallByol, 1);
  for_each_pair(*objective, [](const auto& name, const auto& weight, const auto& average) {
    EXPECT_TRUE(torch::equal(weight, average)) << name;
    EXPECT_FALSE(average.requires_grad()) << name;
  });
  disturb(*objective);
  objective->after_step();
  for_each_pair(*objective, [](const auto& name, const auto& weight, const auto& average) {
    EXPECT_TRUE(torch::allclose(weight - average, torch::full_like(weight, 0.5 * 0.75), 1e-4, 1e-5))
        << name;
  });
}

TEST(Byol, TheTargetHasItsShareInTheLossAndGetsNoGradient) {
  const auto objective = make_objective(kSmallByol, 1);
  const torch::Tensor views = random_pictures(16, 0);
  const torch::Tensor before = objective->forward(views).loss;
  {
    const torch::NoGradGuard no_gradient;
    auto parameters = objective->named_parameters();
    parameters["target.projector.6.weight"].mul_(-1);
  }
  const torch::Tensor after = objective->forward(views).loss;
  EXPECT_NEAR(after.item<float>(), -before.item<float>(), 1e-4f) << "targets point the other way";
  after.backward();
  for_each_pair(*objective, [](const auto& name, const auto&, const auto& average) {
    EXPECT_FALSE(average.grad().defined()) << name;
  });
}

TEST(Byol, TheTargetGrowsWithTheNetwork) {
  ModelConfig config = kSmallByol;
  config.arch = Arch::resnet18;
  config.grow_every = 10;
  const auto objective = make_objective(config, 1);
  const auto counts = objective->named_buffers();
  const auto& sleeper = counts["target.encoder.layer4.1.bn1.num_batches_tracked"];
  objective->forward(random_pictures(16, 0));
  EXPECT_EQ(sleeper.item<std::int64_t>(), 0);
  EXPECT_TRUE(objective->advance_to(10));
  objective->forward(random_pictures(16, 0)).loss.backward();
  EXPECT_EQ(sleeper.item<std::int64_t>(), 2);
  for_each_pair(*objective, [](const auto& name, const auto&, const auto& average) {
    EXPECT_FALSE(average.requires_grad()) << name;
  });
}

TEST(Byol, RefusesAnAverageThatNeverMovesOrLeavesItsBounds) {
  for (const double ema : {1.0, -0.1}) {
    ModelConfig config = kSmallByol;
    config.ema = ema;
    EXPECT_THROW(make_objective(config, 1), Error);
  }
}

using ByolFromAFile = TempFolder;

TEST_F(ByolFromAFile, TheTargetBeginsWithTheWeightsOfTheFileToo) {
  const auto other = make_objective(kSmallByol, 2);
  write_encoder(folder_ / "weights.safetensors", encoder_weights(*other, kSmallByol, 32));
  ModelConfig config = kSmallByol;
  config.init = (folder_ / "weights.safetensors").string();
  const auto objective = make_objective(config, 1);
  for_each_pair(*objective, [](const auto& name, const auto& weight, const auto& average) {
    EXPECT_TRUE(torch::equal(weight, average)) << name;
  });
}

}  // namespace
}  // namespace riffle

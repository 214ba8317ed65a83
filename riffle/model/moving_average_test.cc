#include "riffle/model/moving_average.h"

#include <cmath>
#include <string>

#include <gtest/gtest.h>
#include <torch/types.h>

#include "riffle/base/error.h"
#include "riffle/model/encoder_weights.h"
#include "riffle/model/objective.h"
#include "riffle/model/testing/random_pictures.h"

namespace riffle {
namespace {

ModelConfig averaged(double average) {
  return {.objective = "simclr",
          .arch = Arch::resnet10,
          .stem = Stem::stride2,
          .width = 4,
          .projector_out = 16,
          .average = average};
}

// Other weights, and running statistics of a batch.
void change(Objective& objective) {
  const torch::NoGradGuard no_gradient;
  for (auto& item : objective.named_parameters()) {
    if (item.key().starts_with("encoder.")) item.value().add_(0.25);
  }
  objective.forward(random_pictures(16, 1));
}

TEST(AverageOfTheEncoder, IsWhatEncodes) {
  const auto objective = make_objective(averaged(0.999), 1);
  const torch::Tensor pictures = random_pictures(4, 2);
  const torch::Tensor before = objective->encode(pictures);
  change(*objective);
  EXPECT_TRUE(torch::equal(objective->encode(pictures), before));
  objective->advance_to(Objective::kAverageEvery);
  EXPECT_FALSE(torch::allclose(objective->encode(pictures), before));

  const auto plain = make_objective(averaged(0), 1);
  EXPECT_TRUE(torch::equal(plain->encode(pictures), before)) << "both begin as the same network";
}

TEST(AverageOfTheEncoder, WeightsAndStatisticsFollowAndCountsAreCopied) {
  const auto objective = make_objective(averaged(0.75), 1);
  const auto weights = objective->named_parameters();
  const auto statistics = objective->named_buffers();
  const torch::Tensor weight = weights["encoder.layer1.0.conv1.weight"];
  const torch::Tensor average = weights["average.encoder.layer1.0.conv1.weight"];
  const torch::Tensor mean = statistics["encoder.bn1.running_mean"];
  const torch::Tensor average_mean = statistics["average.encoder.bn1.running_mean"];
  const torch::Tensor old_weight = average.clone();
  const torch::Tensor old_mean = average_mean.clone();
  change(*objective);

  for (const std::int64_t update : {0, 1, 15, 17}) objective->advance_to(update);
  EXPECT_TRUE(torch::equal(average, old_weight));
  objective->advance_to(160);
  const double kept = std::pow(0.75, 16);
  EXPECT_TRUE(torch::allclose(average, old_weight.lerp(weight, 1 - kept)));
  EXPECT_TRUE(torch::allclose(average_mean, old_mean.lerp(mean, 1 - kept)));
  EXPECT_EQ(statistics["average.encoder.bn1.num_batches_tracked"].item<std::int64_t>(), 2);
}

TEST(AverageOfTheEncoder, KeepsLittleOfTheFirstWeights) {
  const auto objective = make_objective(averaged(0.999), 1);
  const auto weights = objective->named_parameters();
  const torch::Tensor average = weights["average.encoder.conv1.weight"];
  const torch::Tensor old = average.clone();
  change(*objective);
  objective->advance_to(16);
  const double kept = std::pow(17.0 / 26.0, 16);
  EXPECT_TRUE(torch::allclose(average, old.lerp(weights["encoder.conv1.weight"], 1 - kept)));
}

TEST(AverageOfTheEncoder, TrainingDoesNotSeeIt) {
  const auto with = make_objective(averaged(0.999), 1);
  const auto without = make_objective(averaged(0), 1);
  for (const auto& objective : {with, without}) {
    objective->advance_to(16);
    objective->forward(random_pictures(16, 0)).loss.backward();
  }
  const auto others = with->named_parameters();
  for (const auto& item : without->named_parameters()) {
    EXPECT_TRUE(torch::equal(item.value().grad(), others[item.key()].grad())) << item.key();
  }
  const torch::Tensor pictures = random_pictures(4, 2);
  EXPECT_TRUE(torch::equal(with->features(pictures), without->features(pictures)));
}

TEST(AverageOfTheEncoder, IsWhatIsExported) {
  const ModelConfig config = averaged(0.999);
  const auto objective = make_objective(config, 1);
  change(*objective);
  objective->advance_to(16);
  const torch::Tensor pictures = random_pictures(4, 2);
  const auto exported = make_encoder(encoder_weights(*objective, config, 32));
  EXPECT_TRUE(torch::equal(exported->encode(pictures), objective->encode(pictures)));
}

TEST(AverageOfTheEncoder, GrowsWithTheNetwork) {
  ModelConfig config = averaged(0.5);
  config.arch = Arch::resnet18;
  config.grow_every = 16;
  const auto objective = make_objective(config, 1);
  change(*objective);
  EXPECT_TRUE(objective->advance_to(16));
  EXPECT_TRUE(torch::isfinite(objective->encode(random_pictures(4, 2))).all().item<bool>());
  for (const auto& parameter : moving_averages(*objective).front()->parameters()) {
    EXPECT_FALSE(parameter.requires_grad());
  }
}

TEST(AverageOfTheEncoder, RefusesSharesOutsideItsBounds) {
  for (const double share : {1.0, -0.1}) EXPECT_THROW(make_objective(averaged(share), 1), Error);
}

}  // namespace
}  // namespace riffle

#include "riffle/model/alignment.h"

#include <cmath>
#include <string>

#include <gtest/gtest.h>
#include <torch/types.h>

#include "riffle/base/error.h"
#include "riffle/model/moving_average.h"
#include "riffle/model/objective.h"
#include "riffle/model/testing/random_pictures.h"

namespace riffle {
namespace {

ModelConfig aligned(double weight, const std::string& objective = "simclr") {
  return {.objective = objective,
          .arch = Arch::resnet10,
          .stem = Stem::stride2,
          .width = 8,
          .projector_out = 32,
          .predictor_hidden = 16,
          .align_weight = weight,
          .align_ema = 0.75};
}

double loss_of(double weight, std::int64_t fresh = 0) {
  return make_objective(aligned(weight), 1)
      ->forward(random_pictures(16, 0), fresh)
      .loss.item<double>();
}

TEST(Alignment, AddsALossInProportionToItsWeight) {
  const double without = loss_of(0);
  EXPECT_NEAR(loss_of(2) - without, 2 * (loss_of(1) - without), 1e-5);
  EXPECT_GT(std::abs(loss_of(1) - without), 1e-4);
}

TEST(Alignment, IsOfReplayedSamplesAlone) {
  constexpr std::int64_t kFresh = 3;
  const auto objective = make_objective(aligned(1), 1);
  torch::Tensor views = random_pictures(16, 0);  // of 8 samples
  torch::Tensor others = views.clone();
  for (const torch::Tensor& half : others.chunk(2)) half.narrow(0, 0, kFresh).fill_(0.3);
  const auto embeddings = torch::randn({16, 32});
  auto changed = embeddings.clone();
  for (const torch::Tensor& half : changed.chunk(2)) half.narrow(0, 0, kFresh).neg_();
  const auto alignment = std::dynamic_pointer_cast<Alignment>(objective->named_modules()["align"]);
  ASSERT_TRUE(alignment);
  const Pass pass{.training = true, .views = 2};
  const auto loss = [&](const torch::Tensor& of_views, const torch::Tensor& of_embeddings,
                        std::int64_t fresh) {
    return alignment->loss(of_views, of_embeddings, pass, fresh).item<double>();
  };
  EXPECT_EQ(loss(views, embeddings, kFresh), loss(others, changed, kFresh));
  EXPECT_NE(loss(views, embeddings, 0), loss(others, changed, 0));
}

TEST(Alignment, TheTargetFollowsSlowlyAndGetsNoGradient) {
  for (const auto& method : objective_names()) {
    const auto objective = make_objective(aligned(1, method), 1);
    objective->forward(random_pictures(16, 0)).loss.backward();
    {
      const torch::NoGradGuard no_gradient;
      objective->named_parameters()["encoder.conv1.weight"].add_(1);
    }
    objective->after_step();
    const auto parameters = objective->named_parameters();
    const auto& target = parameters["align.target.encoder.conv1.weight"];
    const auto behind = parameters["encoder.conv1.weight"].detach() - target;
    EXPECT_TRUE(torch::allclose(behind, torch::full_like(behind, 0.75), 1e-4, 1e-5)) << method;
    EXPECT_FALSE(target.grad().defined()) << method;
    EXPECT_TRUE(parameters["align.head.0.weight"].grad().defined()) << method;
  }
}

TEST(Alignment, RefusesSettingsThatCannotWork) {
  ModelConfig config = aligned(1);
  config.align_ema = 1;
  EXPECT_THROW(make_objective(config, 1), Error);
  config = aligned(-1);
  EXPECT_THROW(make_objective(config, 1), Error);
}

}  // namespace
}  // namespace riffle

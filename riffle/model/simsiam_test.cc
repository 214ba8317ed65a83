#include "riffle/model/simsiam.h"

#include <gtest/gtest.h>
#include <torch/types.h>

#include "riffle/model/testing/random_pictures.h"

namespace riffle {
namespace {

const ModelConfig kSmall{.arch = Arch::resnet10,
                         .stem = Stem::stride2,
                         .width = 8,
                         .projector_out = 32,
                         .predictor_hidden = 16};

TEST(SimSiam, TheLossLiesBetweenMinusOneAndOne) {
  const auto objective = make_objective(kSmall, 1);
  const torch::Tensor loss = objective->forward(random_pictures(16, 0)).loss;
  EXPECT_GE(loss.item<float>(), -1.0f);
  EXPECT_LE(loss.item<float>(), 1.0f);
}

TEST(SimSiam, ThePredictorsParametersAreNamedAsSuch) {
  const auto objective = make_objective(kSmall, 1);
  std::size_t named = 0;
  for (const auto& item : objective->named_parameters())
    named += item.key().starts_with("predictor.");
  EXPECT_EQ(named, 5u);
  EXPECT_EQ(objective->predictor_parameters().size(), named);
}

TEST(SimSiam, LayersBeforeANormHaveNoBiasAndTheLastNormNoScale) {
  const auto objective = make_objective(kSmall, 1);
  const auto parameters = objective->named_parameters();
  for (const char* absent : {"projector.0.bias", "projector.3.bias", "projector.6.bias",
                             "projector.7.weight", "projector.7.bias", "predictor.0.bias"}) {
    EXPECT_FALSE(parameters.contains(absent)) << absent;
  }
  EXPECT_TRUE(parameters.contains("predictor.3.bias"));
  EXPECT_EQ(parameters["projector.0.weight"].size(0), 64);  // 0 in the configuration: the encoder's
}

}  // namespace
}  // namespace riffle

#include "riffle/model/simsiam.h"

#include <gtest/gtest.h>
#include <torch/optim/sgd.h>
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

TEST(SimSiam, AFewUpdatesOnOneBatchLowerTheLoss) {
  const auto objective = make_objective(kSmall, 1);
  const torch::Tensor view1 = random_pictures(16, 0);
  const torch::Tensor view2 = view1 + 0.3 * random_pictures(16, 1);
  torch::optim::SGD optimizer(objective->parameters(),
                              torch::optim::SGDOptions(0.05).momentum(0.9));
  float first = 0.0f;
  float last = 0.0f;
  for (int step = 0; step < 15; ++step) {
    optimizer.zero_grad();
    const torch::Tensor loss = objective->forward(torch::cat({view1, view2})).loss;
    loss.backward();
    optimizer.step();
    (step == 0 ? first : last) = loss.item<float>();
  }
  EXPECT_LT(last, first - 0.2f);
}

}  // namespace
}  // namespace riffle

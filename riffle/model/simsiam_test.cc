#include "riffle/model/simsiam.h"

#include <algorithm>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/optim/sgd.h>
#include <torch/types.h>

#include "riffle/base/error.h"
#include "riffle/base/fields.h"
#include "riffle/base/random.h"
#include "riffle/model/state.h"

namespace riffle {
namespace {

const ModelConfig kSmall{.arch = Arch::resnet10,
                         .stem = Stem::stride2,
                         .width = 8,
                         .projector_out = 32,
                         .predictor_hidden = 16};

torch::Tensor pictures(std::int64_t count, std::uint64_t position) {
  torch::Tensor batch = torch::empty({count, 3, 32, 32});
  Random random(1, Purpose("simsiam_test"), position);
  for (std::int64_t i = 0; i < batch.numel(); ++i) batch.data_ptr<float>()[i] = random.normal();
  return batch;
}

bool same_state(const NamedTensors& a, const NamedTensors& b) {
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (!torch::equal(a[i].second, b[i].second)) return false;
  }
  return a.size() == b.size();
}

TEST(SimSiam, GivesALossFeaturesOfUnitLengthAndTheSpread) {
  const auto objective = make_objective(kSmall, 1);
  const ObjectiveOutput out = objective->forward(pictures(16, 0));
  EXPECT_EQ(out.loss.dim(), 0);
  EXPECT_TRUE(out.loss.requires_grad());
  EXPECT_GE(out.loss.item<float>(), -1.0f);
  EXPECT_LE(out.loss.item<float>(), 1.0f);
  EXPECT_EQ(out.features.sizes(), (std::vector<std::int64_t>{8, 32}));
  EXPECT_FALSE(out.features.requires_grad());
  EXPECT_TRUE(torch::allclose(out.features.norm(2, 1), torch::ones({8})));
  EXPECT_FALSE(out.std.requires_grad());
  EXPECT_NEAR(out.std.item<float>(), 1.0f, 0.15f);
  EXPECT_EQ(objective->feature_dim(), 32);
  EXPECT_EQ(objective->encoder_dim(), 64);
}

TEST(SimSiam, TheSpreadOfCollapsedFeaturesIsZero) {
  const auto objective = make_objective(kSmall, 1);
  const torch::Tensor same = pictures(1, 0).expand({16, 3, 32, 32});
  EXPECT_NEAR(objective->forward(same).std.item<float>(), 0.0f, 1e-3f);
}

TEST(SimSiam, EveryParameterGetsAGradient) {
  const auto objective = make_objective(kSmall, 1);
  objective->forward(pictures(16, 0)).loss.backward();
  for (const auto& item : objective->named_parameters()) {
    ASSERT_TRUE(item.value().grad().defined()) << item.key();
    EXPECT_TRUE(item.value().grad().isfinite().all().item<bool>()) << item.key();
  }
}

TEST(SimSiam, FeaturesAndEncodeChangeNothingAndNeedNoGradient) {
  const auto objective = make_objective(kSmall, 1);
  const NamedTensors before = save_state(*objective);
  const torch::Tensor features = objective->features(pictures(4, 0));
  const torch::Tensor encoded = objective->encode(pictures(4, 0));
  EXPECT_TRUE(same_state(before, save_state(*objective)));
  EXPECT_TRUE(objective->is_training());
  EXPECT_FALSE(features.requires_grad());
  EXPECT_FALSE(encoded.requires_grad());
  EXPECT_EQ(encoded.sizes(), (std::vector<std::int64_t>{4, 64}));
  EXPECT_TRUE(torch::allclose(features.norm(2, 1), torch::ones({4})));
}

TEST(SimSiam, FeaturesOnArrivalDoNotDependOnTheRestOfTheBatch) {
  const auto objective = make_objective(kSmall, 1);
  objective->forward(pictures(16, 2));  // running statistics of some data
  const torch::Tensor views = pictures(4, 0);
  const torch::Tensor all = objective->features(views);
  const torch::Tensor one = objective->features(views.slice(0, 1, 2));
  EXPECT_TRUE(torch::allclose(all.slice(0, 1, 2), one, 1e-4, 1e-5));
}

TEST(SimSiam, TrainingMovesRunningStatisticsOncePerView) {
  const auto objective = make_objective(kSmall, 1);
  objective->forward(pictures(16, 0));
  for (const auto& item : objective->named_buffers()) {
    if (item.key().ends_with("num_batches_tracked")) {
      EXPECT_EQ(item.value().item<std::int64_t>(), 2) << item.key();
    }
  }
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

TEST(SimSiam, RefusesABatchOfOneAndWidthsBelowOne) {
  EXPECT_THROW(make_objective(kSmall, 1)->forward(pictures(2, 0)), Error);
  ModelConfig narrow = kSmall;
  narrow.predictor_hidden = 0;
  EXPECT_THROW(make_objective(narrow, 1), Error);
  narrow = kSmall;
  narrow.projector_out = -1;
  EXPECT_THROW(make_objective(narrow, 1), Error);
}

ModelConfig growing_every(std::int64_t updates) {
  ModelConfig config = kSmall;
  config.arch = Arch::resnet18;
  config.grow_every = updates;
  return config;
}

TEST(SimSiam, GrowsByABlockEverySoManyUpdatesUntilItIsWhole) {
  const auto objective = make_objective(growing_every(10), 1);
  const auto asleep = [&objective] {
    return std::ranges::count_if(objective->parameters(),
                                 [](const auto& each) { return !each.requires_grad(); });
  };
  constexpr int kABlock = 6;  // parameters
  EXPECT_FALSE(objective->grow_to(0));
  EXPECT_FALSE(objective->grow_to(9));
  EXPECT_EQ(asleep(), 4 * kABlock);
  EXPECT_TRUE(objective->grow_to(10));
  EXPECT_EQ(asleep(), 3 * kABlock);
  EXPECT_FALSE(objective->grow_to(19));
  EXPECT_TRUE(objective->grow_to(35)) << "as a run that is resumed there";
  EXPECT_EQ(asleep(), kABlock);
  EXPECT_TRUE(objective->grow_to(40));
  EXPECT_EQ(asleep(), 0);
  EXPECT_FALSE(objective->grow_to(1'000'000));

  const auto fixed = make_objective(growing_every(0), 1);
  EXPECT_FALSE(fixed->grow_to(1'000'000));
}

TEST(SimSiam, WhatSleepsTakesNoPartInTrainingInAnyType) {
  for (const auto type : {torch::kFloat32, torch::kBFloat16}) {
    const auto growing = make_objective(growing_every(10), 1);
    const auto small = make_objective(kSmall, 1);
    const torch::Tensor views = pictures(16, 0).to(type);
    const torch::Tensor loss = growing->forward(views).loss;
    EXPECT_TRUE(torch::equal(loss, small->forward(views).loss));
    EXPECT_TRUE(torch::equal(growing->features(views), small->features(views)));
    loss.backward();
    for (const auto& item : growing->named_parameters()) {
      EXPECT_EQ(item.value().grad().defined(), item.value().requires_grad()) << item.key();
    }
    const auto counts = growing->named_buffers();
    EXPECT_EQ(counts["encoder.layer4.0.bn1.num_batches_tracked"].item<std::int64_t>(), 2);
    EXPECT_EQ(counts["encoder.layer4.1.bn1.num_batches_tracked"].item<std::int64_t>(), 0);
  }
}

TEST(SimSiam, WhoLoadsAGrownNetworkNeedNotKnowHowFarItHasGrown) {
  const auto grown = make_objective(growing_every(10), 1);
  grown->grow_to(20);
  torch::optim::SGD optimizer(grown->parameters(), torch::optim::SGDOptions(0.1));
  for (int step = 0; step < 2; ++step) {
    grown->forward(pictures(16, 0)).loss.backward();
    optimizer.step();
  }
  const auto fresh = make_objective(growing_every(10), 2);
  load_state(*fresh, save_state(*grown));
  EXPECT_TRUE(torch::equal(fresh->encode(pictures(4, 1)), grown->encode(pictures(4, 1))));
  const auto whole = make_objective(growing_every(0), 3);
  load_state(*whole, save_state(*grown));
  EXPECT_TRUE(torch::equal(whole->encode(pictures(4, 1)), grown->encode(pictures(4, 1))));
}

TEST(SimSiam, GrowsOnlyByBlocksThatBeginAsTheIdentity) {
  const auto expect_refused = [](const ModelConfig& config, const std::string& key) {
    try {
      make_objective(config, 1);
      ADD_FAILURE() << "should have thrown";
    } catch (const Error& error) {
      EXPECT_THAT(error.what(), testing::HasSubstr("model.grow_every"));
      EXPECT_THAT(error.what(), testing::HasSubstr(key));
    }
  };
  ModelConfig config = growing_every(10);
  config.residual_gamma = 1.0;
  expect_refused(config, "model.residual_gamma=0");
  config = growing_every(10);
  config.init = "weights.safetensors";
  expect_refused(config, "model.init=weights.safetensors");
  expect_refused(growing_every(-1), "at least 0");
}

TEST(SimSiam, AFewUpdatesOnOneBatchLowerTheLoss) {
  const auto objective = make_objective(kSmall, 1);
  const torch::Tensor view1 = pictures(16, 0);
  const torch::Tensor view2 = view1 + 0.3 * pictures(16, 1);
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

TEST(ModelConfig, KeysAreReadAndWritten) {
  ModelConfig config;
  Fields fields;
  config.describe(fields);
  fields.set("model.arch", "resnet50");
  fields.set("model.stem", "small");
  fields.set("model.width", "32");
  EXPECT_EQ(config.arch, Arch::resnet50);
  EXPECT_EQ(config.stem, Stem::small);
  EXPECT_EQ(config.width, 32);
  EXPECT_EQ(fields.get("model.projector_out"), "2048");
  EXPECT_THROW(fields.set("model.arch", "vgg"), Error);
}

}  // namespace
}  // namespace riffle

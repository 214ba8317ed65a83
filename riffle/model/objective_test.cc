// What every method promises, whichever its loss is.

#include "riffle/model/objective.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/optim/sgd.h>
#include <torch/types.h>

#include "riffle/base/error.h"
#include "riffle/model/state.h"
#include "riffle/model/testing/random_pictures.h"

namespace riffle {
namespace {

bool same_state(const NamedTensors& a, const NamedTensors& b) {
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (!torch::equal(a[i].second, b[i].second)) return false;
  }
  return a.size() == b.size();
}

// All parameters but those of a copy that follows them.
std::vector<torch::OrderedDict<std::string, torch::Tensor>::Item> trained(
    const Objective& objective) {
  std::vector<torch::OrderedDict<std::string, torch::Tensor>::Item> items;
  for (const auto& item : objective.named_parameters()) {
    if (!item.key().starts_with("target.")) items.push_back(item);
  }
  return items;
}

class EveryObjective : public testing::TestWithParam<std::string> {
 protected:
  ModelConfig small() const {
    return {.objective = GetParam(),
            .arch = Arch::resnet10,
            .stem = Stem::stride2,
            .width = 8,
            .projector_out = 32,
            .predictor_hidden = 16};
  }
  ModelConfig growing_every(std::int64_t updates) const {
    ModelConfig config = small();
    config.arch = Arch::resnet18;
    config.grow_every = updates;
    return config;
  }
};
INSTANTIATE_TEST_SUITE_P(Methods, EveryObjective, testing::ValuesIn(objective_names()),
                         [](const auto& known) { return known.param; });

TEST_P(EveryObjective, GivesALossFeaturesOfUnitLengthAndTheSpread) {
  const auto objective = make_objective(small(), 1);
  const ObjectiveOutput out = objective->forward(random_pictures(16, 0));
  EXPECT_EQ(out.loss.dim(), 0);
  EXPECT_TRUE(out.loss.requires_grad());
  EXPECT_EQ(out.features.sizes(), (std::vector<std::int64_t>{8, 32}));
  EXPECT_FALSE(out.features.requires_grad());
  EXPECT_TRUE(torch::allclose(out.features.norm(2, 1), torch::ones({8})));
  EXPECT_FALSE(out.std.requires_grad());
  EXPECT_NEAR(out.std.item<float>(), 1.0f, 0.15f);
  EXPECT_EQ(objective->feature_dim(), 32);
  EXPECT_EQ(objective->encoder_dim(), 64);
}

TEST_P(EveryObjective, TheSpreadOfCollapsedFeaturesIsZero) {
  const auto objective = make_objective(small(), 1);
  const torch::Tensor same = random_pictures(1, 0).expand({16, 3, 32, 32});
  EXPECT_NEAR(objective->forward(same).std.item<float>(), 0.0f, 1e-3f);
}

TEST_P(EveryObjective, EveryParameterGetsAGradient) {
  const auto objective = make_objective(small(), 1);
  objective->forward(random_pictures(16, 0)).loss.backward();
  for (const auto& item : trained(*objective)) {
    ASSERT_TRUE(item.value().grad().defined()) << item.key();
    EXPECT_TRUE(item.value().grad().isfinite().all().item<bool>()) << item.key();
  }
}

TEST_P(EveryObjective, FeaturesAndEncodeChangeNothingAndNeedNoGradient) {
  const auto objective = make_objective(small(), 1);
  const NamedTensors before = save_state(*objective);
  const torch::Tensor features = objective->features(random_pictures(4, 0));
  const torch::Tensor encoded = objective->encode(random_pictures(4, 0));
  EXPECT_TRUE(same_state(before, save_state(*objective)));
  EXPECT_TRUE(objective->is_training());
  EXPECT_FALSE(features.requires_grad());
  EXPECT_FALSE(encoded.requires_grad());
  EXPECT_EQ(encoded.sizes(), (std::vector<std::int64_t>{4, 64}));
  EXPECT_TRUE(torch::allclose(features.norm(2, 1), torch::ones({4})));
}

TEST_P(EveryObjective, FeaturesOnArrivalDoNotDependOnTheRestOfTheBatch) {
  const auto objective = make_objective(small(), 1);
  objective->forward(random_pictures(16, 2));  // running statistics of some data
  const torch::Tensor views = random_pictures(4, 0);
  const torch::Tensor all = objective->features(views);
  const torch::Tensor one = objective->features(views.slice(0, 1, 2));
  EXPECT_TRUE(torch::allclose(all.slice(0, 1, 2), one, 1e-4, 1e-5));
}

TEST_P(EveryObjective, TrainingMovesRunningStatisticsOncePerView) {
  const auto objective = make_objective(small(), 1);
  objective->forward(random_pictures(16, 0));
  for (const auto& item : objective->named_buffers()) {
    if (item.key().ends_with("num_batches_tracked")) {
      EXPECT_EQ(item.value().item<std::int64_t>(), 2) << item.key();
    }
  }
}

TEST_P(EveryObjective, RefusesABatchOfOneAndWidthsBelowOne) {
  EXPECT_THROW(make_objective(small(), 1)->forward(random_pictures(2, 0)), Error);
  ModelConfig narrow = small();
  narrow.predictor_hidden = 0;
  EXPECT_THROW(make_objective(narrow, 1), Error);
  narrow = small();
  narrow.projector_out = -1;
  EXPECT_THROW(make_objective(narrow, 1), Error);
  narrow = small();
  narrow.width = 0;
  EXPECT_THROW(make_objective(narrow, 1), Error);
}

TEST_P(EveryObjective, LossAndFeaturesOfBfloat16ViewsAreFloat32) {
  const auto objective = make_objective(small(), 1);
  const torch::Tensor views = random_pictures(16, 0);
  const float exact = make_objective(small(), 1)->forward(views).loss.item<float>();
  const ObjectiveOutput out = objective->forward(views.to(torch::kBFloat16));
  EXPECT_EQ(out.loss.scalar_type(), torch::kFloat32);
  EXPECT_EQ(out.features.scalar_type(), torch::kFloat32);
  EXPECT_EQ(out.std.scalar_type(), torch::kFloat32);
  EXPECT_NEAR(out.loss.item<float>(), exact, 0.05f * std::max(1.0f, std::abs(exact)));
  out.loss.backward();
  for (const auto& item : trained(*objective)) {
    ASSERT_TRUE(item.value().grad().defined()) << item.key();
    EXPECT_EQ(item.value().grad().scalar_type(), torch::kFloat32) << item.key();
  }
}

TEST_P(EveryObjective, AFewUpdatesOnOneBatchLowerTheLoss) {
  const auto objective = make_objective(small(), 1);
  const torch::Tensor first = random_pictures(16, 0);
  const torch::Tensor views = torch::cat({first, first + 0.3 * random_pictures(16, 1)});
  torch::optim::SGD optimizer(objective->parameters(),
                              torch::optim::SGDOptions(0.02).momentum(0.9));
  std::vector<float> losses;
  for (int step = 0; step < 15; ++step) {
    optimizer.zero_grad();
    const torch::Tensor loss = objective->forward(views).loss;
    loss.backward();
    optimizer.step();
    objective->after_step();
    losses.push_back(loss.item<float>());
  }
  EXPECT_LT(losses.back(), losses.front() - 0.1f * std::abs(losses.front()));
}

TEST_P(EveryObjective, ContinuesAsItWouldHaveFromASavedState) {
  const auto whole = make_objective(small(), 1);
  const auto update = [](Objective& objective, std::uint64_t position) {
    torch::optim::SGD optimizer(objective.parameters(), torch::optim::SGDOptions(0.02));
    const torch::Tensor loss = objective.forward(random_pictures(16, position)).loss;
    loss.backward();
    optimizer.step();
    objective.after_step();
    for (torch::Tensor& parameter : objective.parameters()) parameter.mutable_grad().reset();
    return loss.item<float>();
  };
  for (std::uint64_t position = 0; position < 2; ++position) update(*whole, position);
  const auto resumed = make_objective(small(), 1);
  load_state(*resumed, save_state(*whole));
  for (std::uint64_t position = 2; position < 4; ++position) {
    EXPECT_EQ(update(*resumed, position), update(*whole, position));
  }
  EXPECT_TRUE(same_state(save_state(*resumed), save_state(*whole)));
}

TEST_P(EveryObjective, GrowsByABlockEveryNUpdatesUntilItIsWhole) {
  const auto objective = make_objective(growing_every(10), 1);
  const auto asleep = [&objective] {
    const auto all = trained(*objective);
    return std::count_if(all.begin(), all.end(),
                         [](const auto& item) { return !item.value().requires_grad(); });
  };
  constexpr int kABlock = 6;  // parameters
  EXPECT_FALSE(objective->advance_to(0));
  EXPECT_FALSE(objective->advance_to(9));
  EXPECT_EQ(asleep(), 4 * kABlock);
  EXPECT_TRUE(objective->advance_to(10));
  EXPECT_EQ(asleep(), 3 * kABlock);
  EXPECT_FALSE(objective->advance_to(19));
  EXPECT_TRUE(objective->advance_to(35)) << "as a run that is resumed there";
  EXPECT_EQ(asleep(), kABlock);
  EXPECT_TRUE(objective->advance_to(40));
  EXPECT_EQ(asleep(), 0);
  EXPECT_FALSE(objective->advance_to(1'000'000));

  const auto fixed = make_objective(growing_every(0), 1);
  EXPECT_FALSE(fixed->advance_to(1'000'000));
}

TEST_P(EveryObjective, WhatSleepsTakesNoPartInTrainingInAnyType) {
  for (const auto type : {torch::kFloat32, torch::kBFloat16}) {
    const auto growing = make_objective(growing_every(10), 1);
    const auto whole = make_objective(small(), 1);
    const torch::Tensor views = random_pictures(16, 0).to(type);
    const torch::Tensor loss = growing->forward(views).loss;
    EXPECT_TRUE(torch::equal(loss, whole->forward(views).loss));
    EXPECT_TRUE(torch::equal(growing->features(views), whole->features(views)));
    loss.backward();
    for (const auto& item : growing->named_parameters()) {
      EXPECT_EQ(item.value().grad().defined(), item.value().requires_grad()) << item.key();
    }
    const auto counts = growing->named_buffers();
    EXPECT_EQ(counts["encoder.layer4.0.bn1.num_batches_tracked"].item<std::int64_t>(), 2);
    EXPECT_EQ(counts["encoder.layer4.1.bn1.num_batches_tracked"].item<std::int64_t>(), 0);
  }
}

TEST_P(EveryObjective, WhoLoadsAGrownNetworkNeedNotKnowHowFarItHasGrown) {
  const auto grown = make_objective(growing_every(10), 1);
  grown->advance_to(20);
  torch::optim::SGD optimizer(grown->parameters(), torch::optim::SGDOptions(0.1));
  for (int step = 0; step < 2; ++step) {
    grown->forward(random_pictures(16, 0)).loss.backward();
    optimizer.step();
  }
  const torch::Tensor views = random_pictures(4, 1);
  const auto fresh = make_objective(growing_every(10), 2);
  load_state(*fresh, save_state(*grown));
  EXPECT_TRUE(torch::equal(fresh->encode(views), grown->encode(views)));
  const auto whole = make_objective(growing_every(0), 3);
  load_state(*whole, save_state(*grown));
  EXPECT_TRUE(torch::equal(whole->encode(views), grown->encode(views)));
}

TEST_P(EveryObjective, GrowsOnlyByBlocksThatBeginAsTheIdentity) {
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

}  // namespace
}  // namespace riffle

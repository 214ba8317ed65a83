#include "riffle/train/updater.h"

#include <cmath>
#include <numeric>
#include <set>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/cuda.h>
#include <torch/types.h>
#include <torch/utils.h>

#include "riffle/base/error.h"
#include "riffle/model/simsiam.h"

namespace riffle {
namespace {

// SimSiam with a copy of its first weights that follows them, as the target of BYOL does.
class Followed : public SimSiam {
 public:
  Followed(const ModelConfig& config, std::uint64_t seed) : SimSiam(config, seed) {
    average_ = register_parameter("average", first_weights().detach().clone(),
                                  /*requires_grad=*/false);
  }
  torch::Tensor first_weights() const { return named_parameters()["encoder.conv1.weight"]; }
  torch::Tensor average() const { return average_; }

  void follow() override {
    const torch::NoGradGuard no_gradient;
    average_.lerp_(first_weights(), 0.5);
  }

 private:
  torch::Tensor average_;
};

UpdaterConfig small_config(const std::string& device) {
  UpdaterConfig config;
  config.model = {.arch = Arch::resnet10, .stem = Stem::small, .width = 8, .projector_out = 32};
  config.augment.size = config.picture_size = 32;
  config.train.batch = 8;
  config.device = device;
  return config;
}

std::vector<std::string> devices() {
  std::vector<std::string> names = {"cpu"};
  if (torch::cuda::is_available()) names.emplace_back("cuda");
  return names;
}

Pictures noise(std::int64_t count) {
  std::vector<std::int64_t> places(static_cast<std::size_t>(count));
  std::iota(places.begin(), places.end(), 0);
  return {torch::randint(256, {count, 32, 32, 3}, torch::kByte), places};
}

class UpdaterMethods : public testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(All, UpdaterMethods, testing::ValuesIn(objective_names()),
                         [](const auto& known) { return known.param; });

TEST_P(UpdaterMethods, KeepTheRateOfAPredictorOnlyIfTheyHaveOne) {
  UpdaterConfig config = small_config("cpu");
  config.model.objective = GetParam();
  config.train.fixed_predictor_lr = true;
  if (GetParam() == "simsiam" || GetParam() == "byol") {
    EXPECT_NE(make_updater(config), nullptr);
  } else {
    EXPECT_THAT([&] { make_updater(config); },
                testing::ThrowsMessage<Error>(
                    testing::AllOf(testing::HasSubstr("train.fixed_predictor_lr"),
                                   testing::HasSubstr("model.objective=" + GetParam()))));
  }
}

TEST_P(UpdaterMethods, LearnOnEveryDevice) {
  constexpr std::int64_t kBatch = 32;
  const Pictures pictures = noise(kBatch);
  for (const std::string& device : devices()) {
    UpdaterConfig config = small_config(device);
    config.model.objective = GetParam();
    config.train.batch = kBatch;
    const auto updater = make_updater(config);
    // The same views each time, so that the loss can only fall by learning.
    std::vector<double> losses;
    for (int i = 0; i < 12; ++i) {
      updater->update(pictures, /*step=*/0, 0.02, 0.02);
      losses.push_back(updater->outcome().loss);
    }
    EXPECT_LT(losses.back(), losses.front() - 0.05 * std::abs(losses.front())) << device;
    EXPECT_GT(updater->outcome().std, 0.3) << device;
  }
}

TEST_P(UpdaterMethods, MomentaAreOfWhatIsTrainedAlone) {
  UpdaterConfig config = small_config("cpu");
  config.model.objective = GetParam();
  const auto updater = make_updater(config);
  updater->update(noise(config.train.batch), 0, 0.02, 0.02);
  std::set<std::string> expected, found;
  for (const auto& item : updater->objective().named_parameters()) {
    if (item.value().requires_grad()) expected.insert(item.key());
  }
  for (const auto& [name, momentum] : updater->momenta()) found.insert(name);
  EXPECT_EQ(found, expected);
}

TEST(Updater, WhatFollowsTheWeightsMovesOnceAfterEachStep) {
  for (const std::string& device : devices()) {
    const UpdaterConfig config = small_config(device);
    const auto objective = std::make_shared<Followed>(config.model, config.seed);
    const auto updater = make_updater(config, objective);
    const Pictures pictures = noise(config.train.batch);
    torch::Tensor expected = objective->average().clone();
    for (std::int64_t step = 0; step < 3; ++step) {
      updater->update(pictures, step, 0.1, 0.1);
      updater->outcome();
      const torch::Tensor weights = objective->first_weights().detach();
      EXPECT_FALSE(torch::equal(weights, expected)) << device << ", update " << step;
      expected = torch::lerp(expected, weights, 0.5);
      EXPECT_TRUE(torch::allclose(objective->average(), expected, 1e-5, 1e-6))
          << device << ", update " << step;
    }
  }
}

}  // namespace
}  // namespace riffle

#include "riffle/train/updater.h"

#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <torch/cuda.h>
#include <torch/types.h>
#include <torch/utils.h>

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

TEST(Updater, WhatFollowsTheWeightsMovesOnceAfterEachStep) {
  std::vector<std::string> devices = {"cpu"};
  if (torch::cuda::is_available()) devices.emplace_back("cuda");
  for (const std::string& device : devices) {
    const UpdaterConfig config = small_config(device);
    const auto objective = std::make_shared<Followed>(config.model, config.seed);
    const auto updater = make_updater(config, objective);
    const Pictures pictures{torch::randint(256, {8, 32, 32, 3}, torch::kByte),
                            {0, 1, 2, 3, 4, 5, 6, 7}};
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

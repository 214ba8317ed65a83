// The method trains as riffle's own do: on the CPU and, where there is one, as a recorded graph on
// a GPU, in every precision and with a network that grows.

#include <string>

#include <gtest/gtest.h>
#include <torch/cuda.h>
#include <torch/types.h>

#include "riffle/base/random.h"
#include "riffle/model/barlow_twins.h"
#include "riffle/train/updater.h"

namespace riffle {
namespace {

UpdaterConfig small_config(const std::string& device) {
  UpdaterConfig config;
  config.model = {.arch = Arch::resnet18,
                  .stem = Stem::small,
                  .width = 8,
                  .grow_every = 4,
                  .projector_out = 32};
  config.augment.size = config.picture_size = 32;
  config.train.batch = 16;
  config.device = device;
  return config;
}

Pictures noise_pictures(const UpdaterConfig& config) {
  const std::int64_t side = config.picture_size;
  Pictures pictures{torch::empty({config.train.batch, side, side, 3}, torch::kByte), {}};
  Random random(3, Purpose("method_trains_test"), 0);
  auto* bytes = pictures.tensor.data_ptr<std::uint8_t>();
  for (std::int64_t i = 0; i < pictures.tensor.numel(); ++i) {
    bytes[i] = static_cast<std::uint8_t>(random.below(256));
  }
  for (std::int64_t i = 0; i < config.train.batch; ++i) pictures.indices.push_back(i);
  return pictures;
}

std::vector<double> losses(const UpdaterConfig& config) {
  const Pictures pictures = noise_pictures(config);
  const auto updater =
      make_updater(config, std::make_shared<BarlowTwins>(config.model, config.seed));
  std::vector<double> losses;
  for (std::int64_t step = 0; step < 12; ++step) {
    updater->update(pictures, step, 0.0002, 0.0002);
    losses.push_back(updater->outcome().loss);
  }
  return losses;
}

TEST(BarlowTwinsTrains, OnTheCpu) {
  UpdaterConfig config = small_config("cpu");
  const Pictures pictures = noise_pictures(config);
  const auto updater =
      make_updater(config, std::make_shared<BarlowTwins>(config.model, config.seed));
  // The same views each time, so that the loss can only fall by learning.
  double first = 0;
  for (int i = 0; i < 12; ++i) {
    updater->update(pictures, /*step=*/0, 0.05, 0.05);
    if (i == 0) first = updater->outcome().loss;
  }
  EXPECT_LT(updater->outcome().loss, 0.9 * first);
}

TEST(BarlowTwinsTrains, OnAGpuAsOnTheCpuWhileItGrows) {
  if (!torch::cuda::is_available()) GTEST_SKIP() << "no GPU here";
  UpdaterConfig gpu = small_config("cuda");
  const auto expected = losses(small_config("cpu"));
  gpu.train.precision = Precision::float32;
  const auto exact = losses(gpu);
  gpu.train.precision = Precision::bfloat16;
  const auto rounded = losses(gpu);
  for (std::size_t i = 0; i < expected.size(); ++i) {
    EXPECT_NEAR(exact[i], expected[i], 2e-3) << "update " << i;
    EXPECT_NEAR(rounded[i], expected[i], 0.1) << "update " << i;
  }
}

}  // namespace
}  // namespace riffle

#include "riffle/train/gpu_updater.h"

#include <algorithm>
#include <cmath>

#include <gtest/gtest.h>
#include <torch/torch.h>

#include "riffle/base/random.h"
#include "riffle/train/plain_updater.h"

namespace riffle {
namespace {

class UpdaterOnGpu : public testing::Test {
 protected:
  void SetUp() override {
    if (!torch::cuda::is_available()) GTEST_SKIP() << "no GPU here";
  }
};

UpdaterConfig small_config(Stem stem, Precision precision) {
  UpdaterConfig config;
  config.model.arch = Arch::resnet10;
  config.model.stem = stem;
  config.model.width = 16;
  config.model.projector_out = 128;
  config.model.predictor_hidden = 32;
  config.augment.size = stem == Stem::standard ? 64 : 32;
  config.train.batch = 32;
  config.train.precision = precision;
  config.picture_size = config.augment.size;
  config.seed = 5;
  return config;
}

Pictures made_pictures(const UpdaterConfig& config) {
  const std::int64_t count = 2 * config.train.batch, side = config.picture_size;
  Pictures pictures{torch::empty({count, side, side, 3}, torch::kByte), {}};
  Random random(9, Purpose("test"), 0);
  auto* data = pictures.tensor.data_ptr<std::uint8_t>();
  for (std::int64_t i = 0; i < pictures.tensor.numel(); ++i) {
    data[i] = static_cast<std::uint8_t>((i / 96 * 7 + random.below(64)) % 256);
  }
  for (std::int64_t i = 0; i < config.train.batch; ++i) pictures.indices.push_back(count - 1 - i);
  return pictures;
}

TEST_F(UpdaterOnGpu, Float32FollowsTheCpuOverFiftyUpdates) {
  for (const Stem stem : {Stem::small, Stem::standard}) {
    const UpdaterConfig config = small_config(stem, Precision::float32);
    PlainUpdater cpu(config, torch::kCPU);
    GpuUpdater gpu(config);
    const Pictures pictures = made_pictures(config);
    for (std::int64_t step = 0; step < 50; ++step) {
      const double lr = 0.002;
      const auto a = cpu.update(pictures, step, lr, lr);
      const auto b = gpu.update(pictures, step, lr, lr);
      // Rounding errors grow with every update, the faster the larger the learning rate.
      const double allowed = step == 0 ? 1e-5 : 1e-3;
      ASSERT_NEAR(a.loss, b.loss, allowed) << "update " << step;
      ASSERT_NEAR(a.std, b.std, allowed) << "update " << step;
      if (step == 0) {
        EXPECT_LT((a.features - b.features.cpu()).abs().max().item<double>(), 1e-4);
      }
    }
  }
}

TEST_F(UpdaterOnGpu, Bfloat16StaysCloseToFloat32) {
  for (const Stem stem : {Stem::small, Stem::standard, Stem::stride2}) {
    GpuUpdater exact(small_config(stem, Precision::float32));
    GpuUpdater rounded(small_config(stem, Precision::bfloat16));
    const Pictures pictures = made_pictures(small_config(stem, Precision::best));
    double difference = 0;
    for (std::int64_t step = 0; step < 50; ++step) {
      const auto a = exact.update(pictures, step, 0.02, 0.02);
      const auto b = rounded.update(pictures, step, 0.02, 0.02);
      ASSERT_TRUE(std::isfinite(b.loss));
      difference += std::abs(a.loss - b.loss) / 50;
    }
    EXPECT_LT(difference, 0.03);
  }
}

TEST_F(UpdaterOnGpu, FeaturesOnArrivalAreThoseOfTheCpu) {
  const UpdaterConfig config = small_config(Stem::small, Precision::float32);
  PlainUpdater cpu(config, torch::kCPU);
  GpuUpdater gpu(config);
  const Pictures pictures = made_pictures(config);
  const Pictures on_device{pictures.tensor.cuda(), pictures.indices};
  const auto expected = cpu.arrival_features(pictures, 3);
  EXPECT_LT((gpu.arrival_features(pictures, 3).cpu() - expected).abs().max().item<double>(), 1e-3);
  EXPECT_LT((gpu.arrival_features(on_device, 3).cpu() - expected).abs().max().item<double>(), 1e-3);
}

TEST_F(UpdaterOnGpu, GoesOnFromGivenWeightsAndMomenta) {
  const UpdaterConfig config = small_config(Stem::small, Precision::float32);
  const Pictures pictures = made_pictures(config);
  GpuUpdater first(config);
  for (std::int64_t step = 0; step < 5; ++step) first.update(pictures, step, 0.02, 0.02);
  GpuUpdater second(config);
  load_state(second.objective(), save_state(first.objective()));
  second.load_momenta(first.momenta());
  const auto a = first.update(pictures, 5, 0.02, 0.02);
  const auto b = second.update(pictures, 5, 0.02, 0.02);
  EXPECT_NEAR(a.loss, b.loss, 1e-5);
  const auto c = first.update(pictures, 6, 0.02, 0.02);
  const auto d = second.update(pictures, 6, 0.02, 0.02);
  EXPECT_NEAR(c.loss, d.loss, 1e-4);
}

}  // namespace
}  // namespace riffle

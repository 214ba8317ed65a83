#include "riffle/augment/two_views_gpu.h"

#include <numeric>
#include <vector>

#include <gtest/gtest.h>
#include <torch/cuda.h>
#include <torch/types.h>

#include "riffle/augment/two_views.h"
#include "riffle/base/random.h"

namespace riffle {
namespace {

class TwoViewsOnGpu : public testing::Test {
 protected:
  void SetUp() override {
    if (!torch::cuda::is_available()) GTEST_SKIP() << "no GPU here";
  }
};

// Smooth, so that a pixel more or less shows as little as it would in a photograph.
at::Tensor random_pictures(std::int64_t count, std::int64_t side) {
  auto pictures = torch::empty({count, side, side, 3}, torch::kByte);
  auto* data = pictures.data_ptr<std::uint8_t>();
  for (std::int64_t n = 0; n < count; ++n) {
    Random random(3, Purpose("test"), static_cast<std::uint64_t>(n));
    float waves[3][3];
    for (auto& wave : waves) {
      for (float& value : wave) value = random.uniform(0.05f, 0.6f);
    }
    for (std::int64_t y = 0; y < side; ++y) {
      for (std::int64_t x = 0; x < side; ++x) {
        for (const auto& wave : waves) {
          const float phase = wave[0] * static_cast<float>(x) + wave[1] * static_cast<float>(y);
          *data++ = static_cast<std::uint8_t>(127.5f + 127.0f * std::sin(phase + 10 * wave[2]));
        }
      }
    }
  }
  return pictures;
}

struct Case {
  std::int64_t size;
  std::int64_t picture_size;
};

AugmentConfig config_of_size(std::int64_t size) {
  AugmentConfig config;
  config.size = size;
  return config;
}

constexpr std::int64_t kBatch = 24;

at::Tensor cpu_views(const Case& c, const at::Tensor& pictures, std::uint64_t step) {
  ThreadPool pool(4);
  std::vector<std::int64_t> slots(kBatch);
  std::iota(slots.begin(), slots.end(), 0);
  return TwoViews(config_of_size(c.size), 7, pool)(pictures, slots, step);
}

TEST_F(TwoViewsOnGpu, AreThoseOfTheCpu) {
  ThreadPool pool(4);
  for (const Case c : {Case{32, 32}, Case{32, 64}, Case{17, 40}, Case{64, 64}, Case{224, 224},
                       Case{224, 256}, Case{96, 300}}) {
    const at::Tensor pictures = random_pictures(kBatch, c.picture_size);
    TwoViewsGpu views(config_of_size(c.size), 7, pool, kBatch, c.picture_size, ViewLayout::plain,
                      torch::kFloat32);
    for (std::uint64_t step = 0; step < 4; ++step) {
      const at::Tensor expected = cpu_views(c, pictures, step);
      views.upload(step);
      const at::Tensor got = views.render(pictures.cuda()).cpu();
      EXPECT_TRUE(views.render(pictures.cuda(), 1).cpu().equal(got.narrow(0, 0, kBatch)));
      const at::Tensor difference = (got - expected).abs();
      // Where two channels are equal up to rounding, the hue may turn either way: such pixels are
      // few.
      EXPECT_LT(difference.mean().item<double>(), 2e-6) << c.size << " step " << step;
      EXPECT_LT((difference > 1e-3).to(torch::kFloat64).mean().item<double>(), 1e-4)
          << c.size << " from " << c.picture_size << " step " << step;
    }
  }
}

TEST_F(TwoViewsOnGpu, SecondViewsOfOtherPicturesAreThoseOfTheCpu) {
  ThreadPool pool(4);
  const at::Tensor pictures = random_pictures(2 * kBatch, 40);
  TwoViewsGpu views(config_of_size(32), 7, pool, kBatch, 40, ViewLayout::plain, torch::kFloat32);
  views.upload(2);
  const at::Tensor got = views.render(pictures.cuda()).cpu();
  std::vector<std::int64_t> slots(kBatch), second(kBatch);
  std::iota(slots.begin(), slots.end(), 0);
  std::iota(second.begin(), second.end(), kBatch);
  const at::Tensor expected = TwoViews(config_of_size(32), 7, pool)(pictures, slots, 2, second);
  EXPECT_LT((got - expected).abs().mean().item<double>(), 2e-6);
  EXPECT_THROW(views.render(pictures.narrow(0, 0, kBatch + 1).cuda()), std::invalid_argument);
}

TEST_F(TwoViewsOnGpu, LayoutsHoldTheSameNumbers) {
  ThreadPool pool(4);
  for (const std::int64_t size : {32, 224}) {
    const Case c{size, size};
    const at::Tensor pictures = random_pictures(kBatch, size);
    const at::Tensor plain = cpu_views(c, pictures, 5);
    TwoViewsGpu padded(config_of_size(size), 7, pool, kBatch, size, ViewLayout::padded,
                       torch::kBFloat16);
    padded.upload(5);
    const at::Tensor p = padded.render(pictures.cuda()).cpu().to(torch::kFloat32);
    EXPECT_LT((p.slice(1, 0, 3) - plain).abs().mean().item<double>(), 4e-3);
    EXPECT_EQ(p.slice(1, 3).abs().max().item<float>(), 0.0f);

    TwoViewsGpu folded(config_of_size(size), 7, pool, kBatch, size, ViewLayout::folded,
                       torch::kBFloat16);
    folded.upload(5);
    const at::Tensor f = folded.render(pictures.cuda()).cpu().to(torch::kFloat32);
    const std::int64_t cells = size / 2;
    const at::Tensor inner = f.slice(1, 0, 12)
                                 .slice(2, kFoldedBefore, kFoldedBefore + cells)
                                 .slice(3, kFoldedBefore, kFoldedBefore + cells);
    const at::Tensor unfolded = inner.reshape({2 * kBatch, 2, 2, 3, cells, cells})
                                    .permute({0, 3, 4, 1, 5, 2})
                                    .reshape({2 * kBatch, 3, size, size});
    EXPECT_LT((unfolded - plain).abs().mean().item<double>(), 4e-3);
    EXPECT_FLOAT_EQ(f.abs().sum().item<float>(), inner.abs().sum().item<float>());
  }
}

}  // namespace
}  // namespace riffle

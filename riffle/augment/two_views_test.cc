#include "riffle/augment/two_views.h"

#include <cmath>
#include <stdexcept>
#include <utility>
#include <vector>

#include <gtest/gtest.h>
#include <torch/types.h>

#include "riffle/augment/view.h"
#include "riffle/base/error.h"
#include "riffle/base/random.h"

namespace riffle {
namespace {

AugmentConfig config_of_size(std::int64_t size) {
  AugmentConfig config;
  config.size = size;
  return config;
}

at::Tensor random_pictures(std::int64_t count, std::int64_t side) {
  auto pictures = torch::empty({count, side, side, 3}, torch::kByte);
  Random random(5, Purpose("test"), 0);
  auto* data = pictures.data_ptr<std::uint8_t>();
  for (std::int64_t i = 0; i < pictures.numel(); ++i) {
    data[i] = static_cast<std::uint8_t>(random.bits());
  }
  return pictures;
}

std::vector<std::int64_t> first_slots(std::int64_t count) {
  std::vector<std::int64_t> slots(count);
  for (std::int64_t i = 0; i < count; ++i) slots[i] = i;
  return slots;
}

std::pair<at::Tensor, at::Tensor> halves(const at::Tensor& views) {
  const auto parts = views.chunk(2);
  return {parts.at(0), parts.at(1)};
}

TEST(TwoViews, GivesChannelsLastFloatsOfTheConfiguredSize) {
  ThreadPool pool(2);
  const TwoViews views(config_of_size(24), 1, pool);
  const auto [a, b] = halves(views(random_pictures(5, 32), first_slots(3), 0));
  for (const auto& view : {a, b}) {
    EXPECT_EQ(view.sizes(), (std::vector<std::int64_t>{3, 3, 24, 24}));
    EXPECT_EQ(view.scalar_type(), torch::kFloat);
    EXPECT_TRUE(view.is_contiguous(at::MemoryFormat::ChannelsLast));
    EXPECT_TRUE(torch::isfinite(view).all().item<bool>());
    const auto values = view * torch::tensor(c10::ArrayRef<float>(kStd)).view({1, 3, 1, 1}) +
                        torch::tensor(c10::ArrayRef<float>(kMean)).view({1, 3, 1, 1});
    EXPECT_GE(values.min().item<float>(), -1e-5f);
    EXPECT_LE(values.max().item<float>(), 1 + 1e-5f);
  }
}

TEST(TwoViews, AreTheSameBitsForAnyThreadCount) {
  const auto pictures = random_pictures(40, 40);
  const auto slots = first_slots(40);
  ThreadPool one(1);
  const auto [a, b] = halves(TwoViews(config_of_size(32), 7, one)(pictures, slots, 3));
  for (const int threads : {2, 3, 7}) {
    ThreadPool pool(threads);
    const auto [c, d] = halves(TwoViews(config_of_size(32), 7, pool)(pictures, slots, 3));
    EXPECT_TRUE(torch::equal(a, c)) << threads;
    EXPECT_TRUE(torch::equal(b, d)) << threads;
  }
}

TEST(TwoViews, DependOnStepSeedPlaceAndViewAndOnNothingElse) {
  const auto pictures = random_pictures(2, 32);
  ThreadPool pool(1);
  const TwoViews views(config_of_size(32), 7, pool);
  const std::vector<std::int64_t> same_slot = {1, 1};
  const auto [a, b] = halves(views(pictures, same_slot, 3));
  EXPECT_FALSE(torch::equal(a, b));
  EXPECT_FALSE(torch::equal(a[0], a[1]));
  const auto [next, unused] = halves(views(pictures, same_slot, 4));
  EXPECT_FALSE(torch::equal(a, next));
  const auto [other_seed, unused2] =
      halves(TwoViews(config_of_size(32), 8, pool)(pictures, same_slot, 3));
  EXPECT_FALSE(torch::equal(a, other_seed));

  const auto [again, b_again] = halves(views(pictures, same_slot, 3));
  EXPECT_TRUE(torch::equal(a, again));
  EXPECT_TRUE(torch::equal(b, b_again));
  // What else is in the batch, and where the picture is stored, does not matter.
  const std::vector<std::int64_t> one_slot = {0};
  const auto [moved, unused3] = halves(views(pictures.slice(0, 1, 2), one_slot, 3));
  EXPECT_TRUE(torch::equal(a[0], moved[0]));
}

TEST(TwoViews, OneViewIsTheFirstOfTheTwo) {
  const auto pictures = random_pictures(6, 32);
  ThreadPool pool(2);
  const TwoViews views(probe_training_augmentation(32), 7, pool);
  EXPECT_TRUE(torch::equal(views.one_view(pictures, first_slots(6), 9),
                           halves(views(pictures, first_slots(6), 9)).first));
}

TEST(TwoViews, WithoutAugmentationAreThePictureItself) {
  ThreadPool pool(2);
  for (const int size : {16, 31, 64}) {
    const auto pictures = random_pictures(3, size);
    const TwoViews views(no_augmentation(size), 1, pool);
    const auto expected = normalize(pictures);
    for (std::uint64_t step = 0; step < 50; ++step) {
      const auto [a, b] = halves(views(pictures, first_slots(3), step));
      ASSERT_TRUE(torch::equal(a, expected)) << size << " px, step " << step;
      ASSERT_TRUE(torch::equal(b, expected)) << size << " px, step " << step;
    }
  }
}

TEST(TwoViews, EveryPixelIsWritten) {
  constexpr float kPoison = 12345.0f;
  const auto pictures = random_pictures(1, 30);
  for (const int size : {8, 9, 33, 64}) {
    // One float more than the view on either side, which must stay.
    std::vector<float> out(3 * size * size + 2);
    for (std::uint64_t position = 0; position < 40; ++position) {
      std::fill(out.begin(), out.end(), kPoison);
      const auto plan = plan_view(config_of_size(size), 30, 30, 1, position);
      render_view(pictures.data_ptr<std::uint8_t>(), 30, plan, size, out.data() + 1);
      ASSERT_EQ(out.front(), kPoison);
      ASSERT_EQ(out.back(), kPoison);
      ASSERT_EQ(std::count(out.begin(), out.end(), kPoison), 2) << size << " at " << position;
    }
  }
}

TEST(TwoViews, TakePicturesThatAreNotSquare) {
  auto pictures = torch::full({2, 10, 50, 3}, 255, torch::kByte);
  ThreadPool pool(1);
  AugmentConfig config = probe_training_augmentation(16);
  const auto view = TwoViews(config, 1, pool).one_view(pictures, first_slots(2), 0);
  const auto white = normalize(torch::full({2, 16, 16, 3}, 255, torch::kByte));
  EXPECT_TRUE(torch::allclose(view, white, 1e-5, 1e-5));
}

TEST(TwoViews, SecondViewsCanBeOfOtherPictures) {
  ThreadPool pool(2);
  const TwoViews views(config_of_size(16), 7, pool);
  const auto pictures = random_pictures(6, 20);
  const std::vector<std::int64_t> slots = {4, 0, 2}, partners = {5, 0, 3};
  const auto [a, b] = halves(views(pictures, slots, 3, partners));
  EXPECT_TRUE(a.equal(halves(views(pictures, slots, 3)).first));
  EXPECT_TRUE(b.equal(halves(views(pictures, partners, 3)).second));
  EXPECT_FALSE(b[0].equal(halves(views(pictures, slots, 3)).second[0]));
  const std::vector<std::int64_t> too_few = {5, 0}, beyond = {5, 0, 6};
  EXPECT_THROW(views(pictures, slots, 3, too_few), std::invalid_argument);
  EXPECT_THROW(views(pictures, slots, 3, beyond), std::out_of_range);
}

TEST(TwoViews, RefuseABadConfiguration) {
  ThreadPool pool(1);
  EXPECT_THROW(TwoViews(config_of_size(0), 1, pool), Error);
}

TEST(TwoViews, RefuseSlotsAndTensorsThatCannotBe) {
  ThreadPool pool(1);
  const TwoViews views(config_of_size(16), 1, pool);
  const auto pictures = random_pictures(2, 16);
  const std::vector<std::int64_t> beyond = {0, 2}, negative = {-1}, fine = {0};
  EXPECT_THROW(views(pictures, beyond, 0), std::out_of_range);
  EXPECT_THROW(views(pictures, negative, 0), std::out_of_range);
  EXPECT_THROW(views(pictures.to(torch::kFloat), fine, 0), std::invalid_argument);
  EXPECT_THROW(views(pictures.transpose(1, 2), fine, 0), std::invalid_argument);
  EXPECT_THROW(views(pictures[0], fine, 0), std::invalid_argument);
}

TEST(TwoViews, OfAPartAreThoseOfItsPlacesInTheBatch) {
  ThreadPool pool(1);
  const TwoViews views(config_of_size(16), 1, pool);
  const auto pictures = random_pictures(6, 16);
  const auto [a, b] = halves(views(pictures, first_slots(6), 3));
  const std::vector<std::int64_t> part = {1, 4, 5};
  const BatchPlaces places{.first = 1, .count = 1, .rest = 4};
  const auto [c, d] = halves(views(pictures, part, 3, {}, places));
  const auto rows = torch::tensor(c10::ArrayRef<std::int64_t>(part));
  EXPECT_TRUE(torch::equal(a.index_select(0, rows), c));
  EXPECT_TRUE(torch::equal(b.index_select(0, rows), d));
}

TEST(TwoViews, OfNoPicturesAreEmpty) {
  ThreadPool pool(1);
  EXPECT_EQ(TwoViews(config_of_size(16), 1, pool)(random_pictures(2, 16), {}, 0).size(0), 0);
}

TEST(Normalize, FollowsTheDefinition) {
  const auto pictures = random_pictures(3, 17);
  const auto values = normalize(pictures);
  EXPECT_TRUE(values.is_contiguous(at::MemoryFormat::ChannelsLast));
  const auto mean = torch::tensor(c10::ArrayRef<float>(kMean)).view({1, 3, 1, 1});
  const auto std = torch::tensor(c10::ArrayRef<float>(kStd)).view({1, 3, 1, 1});
  const auto expected = (pictures.permute({0, 3, 1, 2}).to(torch::kFloat) / 255 - mean) / std;
  EXPECT_TRUE(torch::allclose(values, expected, 1e-5, 1e-5));
  const auto composed = normalize_composed(pictures);
  EXPECT_TRUE(composed.is_contiguous(at::MemoryFormat::ChannelsLast));
  EXPECT_TRUE(torch::allclose(composed, expected, 1e-5, 1e-5));
  EXPECT_THROW(normalize(pictures.to(torch::kFloat)), std::invalid_argument);
}

}  // namespace
}  // namespace riffle

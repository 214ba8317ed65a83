#include "riffle/augment/view_plan.h"

#include <algorithm>
#include <map>
#include <set>
#include <stdexcept>
#include <vector>

#include <gtest/gtest.h>

namespace riffle {
namespace {

constexpr int kPlans = 4000;

// The plans of `kPlans` steps for a picture of height x width.
std::vector<ViewPlan> plans(const AugmentConfig& config, int height = 64, int width = 64) {
  std::vector<ViewPlan> result;
  for (int step = 0; step < kPlans; ++step) {
    result.push_back(plan_view(config, height, width, 1, view_position(step, 0, 0)));
  }
  return result;
}

template <typename Predicate>
double share(const std::vector<ViewPlan>& all, Predicate predicate) {
  return static_cast<double>(std::count_if(all.begin(), all.end(), predicate)) / all.size();
}

bool same_crop(const CropBox& a, const CropBox& b) {
  return a.top == b.top && a.left == b.left && a.height == b.height && a.width == b.width;
}

TEST(ViewPosition, NoTwoViewsShareOne) {
  std::set<std::uint64_t> seen;
  const std::uint64_t last_step = (std::uint64_t{1} << 43) - 1;
  const std::int64_t last_place = (std::int64_t{1} << 20) - 1;
  for (const std::uint64_t step : {std::uint64_t{0}, std::uint64_t{1}, std::uint64_t{2},
                                   std::uint64_t{5'000'000'000}, last_step}) {
    for (const std::int64_t place :
         {std::int64_t{0}, std::int64_t{1}, std::int64_t{255}, last_place}) {
      for (const int view : {0, 1}) {
        EXPECT_TRUE(seen.insert(view_position(step, place, view)).second);
      }
    }
  }
  EXPECT_THROW(view_position(last_step + 1, 0, 0), std::out_of_range);
  EXPECT_THROW(view_position(0, last_place + 1, 0), std::out_of_range);
  EXPECT_THROW(view_position(0, -1, 0), std::out_of_range);
  EXPECT_THROW(view_position(0, 0, 2), std::out_of_range);
}

TEST(ViewPlan, OperationsHappenAsOftenAsConfigured) {
  const auto all = plans(AugmentConfig{});
  EXPECT_NEAR(share(all, [](const ViewPlan& p) { return p.flip; }), 0.5, 0.03);
  EXPECT_NEAR(share(all, [](const ViewPlan& p) { return p.jitter_count == 4; }), 0.8, 0.03);
  EXPECT_NEAR(share(all, [](const ViewPlan& p) { return p.jitter_count == 0; }), 0.2, 0.03);
  EXPECT_NEAR(share(all, [](const ViewPlan& p) { return p.grayscale; }), 0.2, 0.03);
  EXPECT_NEAR(share(all, [](const ViewPlan& p) { return p.blur_sigma > 0; }), 0.5, 0.03);
  // Independent of one another.
  EXPECT_NEAR(share(all, [](const ViewPlan& p) { return p.flip && p.grayscale; }), 0.1, 0.03);
}

TEST(ViewPlan, ProbabilitiesZeroAndOneAreExact) {
  AugmentConfig config;
  config.flip = 1.0;
  config.jitter = 0.0;
  config.grayscale = 0.0;
  config.blur = 0.0;
  for (const auto& plan : plans(config)) {
    ASSERT_TRUE(plan.flip);
    ASSERT_FALSE(plan.grayscale);
    ASSERT_EQ(plan.jitter_count, 0);
    ASSERT_EQ(plan.blur_sigma, 0.0f);
  }
}

TEST(ViewPlan, CropsLieWithinThePictureAndCoverTheConfiguredArea) {
  const int height = 96, width = 128;
  const double area = height * width;
  double sum = 0, smallest = 1, largest = 0;
  for (const auto& plan : plans(AugmentConfig{}, height, width)) {
    const auto& box = plan.crop;
    ASSERT_GE(box.top, 0);
    ASSERT_GE(box.left, 0);
    ASSERT_LE(box.top + box.height, height);
    ASSERT_LE(box.left + box.width, width);
    const double covered = box.height * box.width / area;
    const double aspect = static_cast<double>(box.width) / box.height;
    ASSERT_GT(covered, 0.2 - 0.02);
    ASSERT_LE(covered, 1.0);
    ASSERT_GT(aspect, 0.75 * 0.95);
    ASSERT_LT(aspect, 4.0 / 3.0 * 1.05);
    sum += covered;
    smallest = std::min(smallest, covered);
    largest = std::max(largest, covered);
  }
  EXPECT_LT(smallest, 0.22);
  EXPECT_GT(largest, 0.95);
  // A uniform share would have 0.6; boxes that do not fit are drawn again, and those are the large
  // ones. The figure is from 400,000 draws by a few lines of Python that follow torchvision.
  EXPECT_NEAR(sum / kPlans, 0.498, 0.02);
}

TEST(ViewPlan, FactorsSpanTheirRanges) {
  AugmentConfig config;
  config.brightness = 0.4;
  config.contrast = 1.5;
  config.hue = 0.1;
  config.blur = 1.0;
  float low[5], high[5];
  std::fill(low, low + 5, 100.0f);
  std::fill(high, high + 5, -100.0f);
  for (const auto& plan : plans(config)) {
    const float values[5] = {plan.jitter_amount[0], plan.jitter_amount[1], plan.jitter_amount[2],
                             plan.jitter_amount[3], plan.blur_sigma};
    for (int i = 0; i < 5; ++i) {
      low[i] = std::min(low[i], values[i]);
      high[i] = std::max(high[i], values[i]);
    }
  }
  const float expected_low[5] = {0.6f, 0.0f, 0.6f, -0.1f, 0.1f};
  const float expected_high[5] = {1.4f, 2.5f, 1.4f, 0.1f, 2.0f};
  for (int i = 0; i < 5; ++i) {
    EXPECT_GE(low[i], expected_low[i] - 1e-6f) << i;
    EXPECT_LE(high[i], expected_high[i] + 1e-6f) << i;
    EXPECT_NEAR(low[i], expected_low[i], 0.02f) << i;
    EXPECT_NEAR(high[i], expected_high[i], 0.02f) << i;
  }
}

TEST(ViewPlan, AllOrdersOfTheFourJittersAreEquallyLikely) {
  AugmentConfig config;
  config.jitter = 1.0;
  std::map<std::vector<int>, int> orders;
  for (const auto& plan : plans(config)) {
    std::vector<int> order;
    for (const Jitter kind : plan.jitter_order) order.push_back(static_cast<int>(kind));
    ++orders[order];
  }
  ASSERT_EQ(orders.size(), 24u);
  for (const auto& [order, count] : orders) {
    EXPECT_EQ(std::set<int>(order.begin(), order.end()).size(), 4u);
    EXPECT_NEAR(count, kPlans / 24.0, 60);
  }
}

TEST(ViewPlan, JittersWithoutRangeAreLeftOut) {
  AugmentConfig config;
  config.jitter = 1.0;
  config.hue = 0.0;
  config.contrast = 0.0;
  for (const auto& plan : plans(config)) {
    ASSERT_EQ(plan.jitter_count, 2);
    for (int i = 0; i < 2; ++i) {
      ASSERT_TRUE(plan.jitter_order[i] == Jitter::brightness ||
                  plan.jitter_order[i] == Jitter::saturation);
    }
  }
}

TEST(ViewPlan, SwitchingOneOperationOffLeavesTheOthersAsTheyWere) {
  AugmentConfig without;
  without.jitter = 0.0;
  without.blur = 0.0;
  const auto full = plans(AugmentConfig{});
  const auto reduced = plans(without);
  for (int i = 0; i < kPlans; ++i) {
    ASSERT_TRUE(same_crop(full[i].crop, reduced[i].crop));
    ASSERT_EQ(full[i].flip, reduced[i].flip);
    ASSERT_EQ(full[i].grayscale, reduced[i].grayscale);
  }
}

TEST(ViewPlan, FallsBackToTheCentreWhenNoCropFits) {
  AugmentConfig config;
  config.crop_min = config.crop_max = 1.0;
  // Four times as wide as high: no box of the whole area has an aspect of at most 4/3.
  for (const auto& plan : plans(config, 30, 120)) {
    ASSERT_TRUE(same_crop(plan.crop, {0, 40, 30, 40}));
  }
  for (const auto& plan : plans(config, 120, 30)) {
    ASSERT_TRUE(same_crop(plan.crop, {40, 0, 40, 30}));
  }
}

TEST(ViewPlan, WorksOnTheSmallestPicture) {
  for (const auto& plan : plans(AugmentConfig{}, 1, 1)) {
    ASSERT_TRUE(same_crop(plan.crop, {0, 0, 1, 1}));
  }
}

}  // namespace
}  // namespace riffle

#include "riffle/stream/shapes/camera_path.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include <gtest/gtest.h>

namespace riffle {
namespace {

CameraPath path(std::uint64_t seed, int width, int height, std::int64_t frames,
                std::int64_t pace = 16) {
  return {Random(seed, Purpose("test"), 0), width, height, frames, pace};
}

TEST(CameraPath, NeverSeesBeyondTheBorder) {
  for (const auto& [width, height] : {std::pair{64, 64}, {500, 375}, {1, 1}, {3, 4096}, {640, 2}}) {
    for (std::uint64_t seed = 0; seed < 50; ++seed) {
      const auto camera = path(seed, width, height, 70);
      for (std::int64_t frame = 0; frame < 70; ++frame) {
        const auto view = camera.at(frame);
        ASSERT_GE(view.x, 0);
        ASSERT_GE(view.y, 0);
        ASSERT_LE(view.x + view.side, width);
        ASSERT_LE(view.y + view.side, height);
        ASSERT_GE(view.side, 0.499 * std::min(width, height));
      }
    }
  }
}

TEST(CameraPath, IsSmooth) {
  const auto camera = path(1, 64, 64, 256);
  for (std::int64_t frame = 1; frame + 1 < 256; ++frame) {
    const auto before = camera.at(frame - 1), now = camera.at(frame), after = camera.at(frame + 1);
    // In pixels of 64: steps of a few, and a step differs little from the one before.
    EXPECT_LT(std::abs(after.x - now.x), 4);
    EXPECT_LT(std::abs(after.x - 2 * now.x + before.x), 0.7);
    EXPECT_LT(std::abs(after.y - 2 * now.y + before.y), 0.7);
    EXPECT_LT(std::abs(after.side - 2 * now.side + before.side), 0.7);
  }
}

TEST(CameraPath, PansAndZoomsAndALongerOneSeesMore) {
  double short_range = 0, long_range = 0, zoom_range = 0;
  for (std::uint64_t seed = 0; seed < 30; ++seed) {
    const auto camera = path(seed, 64, 64, 256);
    const auto range = [&](std::int64_t frames, auto value) {
      double least = 1e9, most = -1e9;
      for (std::int64_t frame = 0; frame < frames; ++frame) {
        least = std::min(least, value(camera.at(frame)));
        most = std::max(most, value(camera.at(frame)));
      }
      return most - least;
    };
    const auto x = [](const CameraView& view) { return view.x + view.side / 2; };
    short_range += range(16, x) / 30;
    long_range += range(256, x) / 30;
    zoom_range += range(256, [](const CameraView& view) { return view.side; }) / 30;
  }
  EXPECT_GT(short_range, 1);
  EXPECT_GT(long_range, 2 * short_range);
  EXPECT_GT(zoom_range, 8);
}

TEST(CameraPath, AtFourTimesThePaceTakesFourTimesAsLongForTheSameWay) {
  const auto brisk = path(5, 64, 64, 64, 16), slow = path(5, 64, 64, 253, 64);
  for (std::int64_t frame = 0; frame < 64; ++frame) {
    EXPECT_DOUBLE_EQ(slow.at(4 * frame).x, brisk.at(frame).x);
    EXPECT_DOUBLE_EQ(slow.at(4 * frame).side, brisk.at(frame).side);
  }
}

}  // namespace
}  // namespace riffle

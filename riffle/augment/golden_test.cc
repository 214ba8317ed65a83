// Every operation alone, and complete views, against testdata/golden.*, which make_golden.py writes
// from torchvision.
#include <cmath>
#include <cstring>
#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "riffle/augment/blur.h"
#include "riffle/augment/color.h"
#include "riffle/augment/crop_resize.h"
#include "riffle/augment/normalize.h"
#include "riffle/augment/view.h"
#include "riffle/base/file.h"

namespace riffle {
namespace {

constexpr int kHeight = 20;
constexpr int kWidth = 24;
constexpr int kPixels = kHeight * kWidth;
constexpr float kTolerance = 1e-5f;

using Values = std::vector<float>;

// The formula of make_golden.py.
std::vector<std::uint8_t> test_picture() {
  std::vector<std::uint8_t> picture;
  for (int y = 0; y < kHeight; ++y) {
    for (int x = 0; x < kWidth; ++x) {
      for (int channel = 0; channel < 3; ++channel) {
        int c = channel;
        if ((x + y) % 7 == 0 || ((x + 2 * y) % 11 == 0 && channel == 1)) c = 0;
        picture.push_back(
            static_cast<std::uint8_t>((7 * x + 5 * y + 83 * c + x * y * (c + 1) % 31 * 5) % 256));
      }
    }
  }
  return picture;
}

std::map<std::string, Values> load_golden() {
  const std::string folder = RIFFLE_SOURCE_DIR "/riffle/augment/testdata/";
  const auto bytes = read_bytes(folder + "golden.bin");
  std::ifstream index(folder + "golden.txt");
  std::map<std::string, Values> golden;
  for (std::string line; std::getline(index, line);) {
    std::istringstream words(line);
    std::string name;
    std::size_t offset = 0, channels = 0, height = 0, width = 0;
    words >> name >> offset >> channels >> height >> width;
    Values values(channels * height * width);
    if (!words || 4 * (offset + values.size()) > bytes.size()) {
      throw std::runtime_error("golden.txt does not describe golden.bin: " + line);
    }
    std::memcpy(values.data(), bytes.data() + 4 * offset, 4 * values.size());
    golden[name] = std::move(values);
  }
  return golden;
}

const Values& golden(const std::string& name) {
  static const auto all = load_golden();
  return all.at(name);
}

void expect_close(const std::string& name, const Values& values) {
  const Values& expected = golden(name);
  ASSERT_EQ(values.size(), expected.size()) << name;
  for (std::size_t i = 0; i < values.size(); ++i) {
    ASSERT_NEAR(values[i], expected[i], kTolerance) << name << " at " << i;
  }
}

// Filled with what no operation may leave behind.
Values poison(int size) { return Values(size, std::nanf("")); }

Values planes_of_picture() {
  const auto picture = test_picture();
  Values planes(picture.size());
  for (int i = 0; i < kPixels; ++i) {
    for (int c = 0; c < 3; ++c) planes[c * kPixels + i] = picture[3 * i + c] / 255.0f;
  }
  return planes;
}

Values cropped(CropBox box, int height, int width, bool flip = false) {
  CropScratch scratch;
  Values planes = poison(3 * height * width);
  crop_resize(test_picture().data(), kWidth, box, flip, height, width, planes.data(), scratch);
  return planes;
}

// Three channels a pixel to three planes.
Values planar(const Values& pixels) {
  Values planes(pixels.size());
  const std::size_t count = pixels.size() / 3;
  for (std::size_t i = 0; i < pixels.size(); ++i) planes[i % 3 * count + i / 3] = pixels[i];
  return planes;
}

TEST(Golden, TestPictureIsTheOneOfTheScript) { expect_close("picture", planes_of_picture()); }

TEST(Golden, CropAndResizeFollowTorch) {
  expect_close("crop_up", cropped({3, 5, 13, 11}, 32, 32));
  expect_close("crop_down", cropped({0, 0, 20, 24}, 8, 8));
  expect_close("crop_far_down", cropped({1, 0, 19, 23}, 3, 2));
  expect_close("crop_mixed", cropped({8, 0, 9, 24}, 16, 16));
  expect_close("crop_same", cropped({2, 4, 16, 16}, 16, 16));
  expect_close("crop_pixel", cropped({19, 23, 1, 1}, 8, 8));
}

TEST(Golden, ScratchOfALargerCropDoesNotShowInASmallerOne) {
  CropScratch scratch;
  const auto picture = test_picture();
  Values large = poison(3 * 32 * 32);
  crop_resize(picture.data(), kWidth, {0, 0, 20, 24}, true, 32, 32, large.data(), scratch);
  Values small = poison(3 * 8 * 8);
  crop_resize(picture.data(), kWidth, {0, 0, 20, 24}, false, 8, 8, small.data(), scratch);
  expect_close("crop_down", small);
}

TEST(Golden, FlipMirrorsLeftToRight) {
  expect_close("flip", cropped({3, 5, 13, 11}, 16, 16, true));
}

void expect_color(const std::string& name, void (*adjust)(float*, int, float), float amount) {
  Values planes = planes_of_picture();
  adjust(planes.data(), kPixels, amount);
  expect_close(name, planes);
}

TEST(Golden, BrightnessFollowsTorchvision) {
  expect_color("brightness_0.6", adjust_brightness, 0.6f);
  expect_color("brightness_1.0", adjust_brightness, 1.0f);
  expect_color("brightness_1.4", adjust_brightness, 1.4f);
}

TEST(Golden, ContrastFollowsTorchvision) {
  expect_color("contrast_0.0", adjust_contrast, 0.0f);
  expect_color("contrast_0.6", adjust_contrast, 0.6f);
  expect_color("contrast_1.4", adjust_contrast, 1.4f);
}

TEST(Golden, SaturationFollowsTorchvision) {
  expect_color("saturation_0.0", adjust_saturation, 0.0f);
  expect_color("saturation_0.6", adjust_saturation, 0.6f);
  expect_color("saturation_1.4", adjust_saturation, 1.4f);
}

TEST(Golden, HueFollowsTorchvision) {
  expect_color("hue_-0.5", adjust_hue, -0.5f);
  expect_color("hue_-0.1", adjust_hue, -0.1f);
  expect_color("hue_0.05", adjust_hue, 0.05f);
  expect_color("hue_0.4", adjust_hue, 0.4f);
}

TEST(Golden, GrayscaleFollowsTorchvision) {
  Values planes = planes_of_picture();
  to_grayscale(planes.data(), kPixels);
  expect_close("grayscale", planes);
}

TEST(Golden, BlurFollowsTorchvision) {
  BlurScratch scratch;
  const auto expect_blur = [&](const std::string& name, int kernel_size, float sigma) {
    Values planes = planes_of_picture();
    gaussian_blur(planes.data(), kHeight, kWidth, kernel_size, sigma, scratch);
    expect_close(name, planes);
  };
  expect_blur("blur_23_2.0", 23, 2.0f);
  expect_blur("blur_9_0.7", 9, 0.7f);
  expect_blur("blur_9_0.1", 9, 0.1f);
  expect_blur("blur_3_2.0", 3, 2.0f);
}

TEST(Golden, NormalizeFollowsTorchvision) {
  const Values planes = planes_of_picture();
  Values out = poison(3 * kPixels);
  normalize_planes(planes.data(), kPixels, out.data());
  expect_close("normalize", planar(out));
}

Values rendered(const ViewPlan& plan, int size) {
  Values out = poison(3 * size * size);
  render_view(test_picture().data(), kWidth, plan, size, out.data());
  return planar(out);
}

TEST(Golden, CompleteViewsFollowTorchvision) {
  ViewPlan color;
  color.crop = {2, 3, 15, 17};
  color.jitter_amount[static_cast<int>(Jitter::brightness)] = 1.2f;
  color.jitter_amount[static_cast<int>(Jitter::contrast)] = 0.7f;
  color.jitter_amount[static_cast<int>(Jitter::saturation)] = 1.3f;
  color.jitter_amount[static_cast<int>(Jitter::hue)] = -0.07f;
  color.jitter_order[0] = Jitter::saturation;
  color.jitter_order[1] = Jitter::contrast;
  color.jitter_order[2] = Jitter::hue;
  color.jitter_order[3] = Jitter::brightness;
  color.jitter_count = 4;
  color.flip = true;
  color.blur_sigma = 1.1f;
  expect_close("view_color", rendered(color, 32));

  ViewPlan gray;
  gray.crop = {0, 6, 20, 18};
  gray.jitter_amount[static_cast<int>(Jitter::brightness)] = 0.8f;
  gray.jitter_amount[static_cast<int>(Jitter::hue)] = 0.1f;
  gray.jitter_order[0] = Jitter::hue;
  gray.jitter_order[1] = Jitter::brightness;
  gray.jitter_count = 2;
  gray.grayscale = true;
  expect_close("view_gray", rendered(gray, 16));
}

TEST(BlurKernel, IsOddAndAboutATenthOfTheView) {
  EXPECT_EQ(blur_kernel_size(8), 3);
  EXPECT_EQ(blur_kernel_size(32), 3);
  EXPECT_EQ(blur_kernel_size(64), 7);
  EXPECT_EQ(blur_kernel_size(224), 23);
}

}  // namespace
}  // namespace riffle

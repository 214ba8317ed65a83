#include "riffle/image/resize.h"

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <tuple>

#include <gtest/gtest.h>

#include "riffle/base/random.h"

namespace riffle {
namespace {

Picture patterned(int width, int height) {
  Picture picture(width, height);
  for (int y = 0; y < height; ++y) {
    for (int x = 0; x < width; ++x) {
      for (int c = 0; c < 3; ++c) {
        picture.at(x, y)[c] =
            static_cast<std::uint8_t>((x * 37 + y * 59 + c * 83 + x * y * 11) % 256);
      }
    }
  }
  return picture;
}

Picture noise(int width, int height, std::uint64_t seed) {
  Picture picture(width, height);
  Random random(seed, Purpose("noise"), 0);
  for (auto& sample : picture.rgb) sample = static_cast<std::uint8_t>(random.below(256));
  return picture;
}

Picture cut(const Picture& picture, int left, int top, int width, int height) {
  Picture part(width, height);
  for (int y = 0; y < height; ++y) {
    std::copy_n(picture.at(left, top + y), width * 3, part.at(0, y));
  }
  return part;
}

// The definition, pixel by pixel and without any shortcut: the mean of all input pixels under a
// triangle.
double defined_value(const Picture& picture, int width, int height, int x, int y, int channel) {
  const auto triangle = [](int at, int input, int output, int from) {
    const double scale = static_cast<double>(input) / output;
    const double centre = (at + 0.5) * scale;
    return std::max(0.0, 1 - std::abs(from + 0.5 - centre) / std::max(1.0, scale));
  };
  double sum = 0, weights = 0;
  for (int v = 0; v < picture.height; ++v) {
    for (int u = 0; u < picture.width; ++u) {
      const double weight =
          triangle(x, picture.width, width, u) * triangle(y, picture.height, height, v);
      sum += weight * picture.at(u, v)[channel];
      weights += weight;
    }
  }
  return sum / weights;
}

struct Case {
  int from_width, from_height, width, height;
  std::vector<float> expected;  // rows of RGB
};

// From PyTorch 2.13: interpolate(..., mode="bilinear", antialias=True) on float64.
const Case kFromPyTorch[] = {
    {9, 7, 4, 3, {89.041f,  137.559f, 131.220f, 144.261f, 136.725f, 110.902f, 140.993f, 120.077f,
                  108.526f, 101.931f, 114.922f, 128.959f, 160.997f, 96.420f,  129.081f, 136.549f,
                  129.197f, 126.618f, 117.433f, 133.587f, 133.580f, 125.266f, 139.425f, 138.956f,
                  127.049f, 128.547f, 119.596f, 141.850f, 143.233f, 137.927f, 157.021f, 133.875f,
                  121.878f, 103.547f, 157.290f, 138.935f}},
    {4, 3, 7, 5, {0.000f,   83.000f,  166.000f, 13.214f,  96.214f,  179.214f, 34.357f,  117.357f,
                  200.357f, 55.500f,  138.500f, 221.500f, 76.643f,  159.643f, 224.357f, 97.786f,
                  180.786f, 99.214f,  111.000f, 194.000f, 21.000f,  23.600f,  106.600f, 189.600f,
                  38.386f,  121.386f, 167.814f, 62.043f,  145.043f, 132.957f, 85.700f,  168.700f,
                  149.300f, 109.357f, 185.043f, 161.986f, 133.014f, 150.186f, 97.871f,  147.800f,
                  128.400f, 57.800f,  59.000f,  142.000f, 225.000f, 76.143f,  159.143f, 150.714f,
                  103.571f, 186.571f, 31.857f,  131.000f, 214.000f, 41.000f,  158.429f, 223.143f,
                  68.429f,  185.857f, 104.286f, 95.857f,  203.000f, 30.000f,  113.000f, 94.400f,
                  177.400f, 106.800f, 113.900f, 142.043f, 89.729f,  145.100f, 85.471f,  62.414f,
                  176.300f, 105.700f, 86.300f,  196.529f, 129.586f, 117.500f, 139.957f, 102.271f,
                  148.700f, 104.600f, 85.200f,  168.200f, 118.000f, 201.000f, 28.000f,  139.071f,
                  130.643f, 49.071f,  172.786f, 18.071f,  82.786f,  206.500f, 33.500f,  116.500f,
                  221.929f, 67.214f,  150.214f, 109.357f, 100.929f, 183.929f, 39.000f,  122.000f,
                  205.000f}},
    {13, 4, 5, 4, {39.467f,  122.467f, 188.400f, 124.455f, 168.667f, 88.758f,  141.543f, 70.943f,
                   132.000f, 63.545f,  146.545f, 175.242f, 148.533f, 154.733f, 75.600f,  110.200f,
                   176.133f, 97.000f,  181.667f, 101.758f, 130.455f, 112.943f, 152.057f, 81.457f,
                   163.242f, 83.333f,  127.545f, 88.867f,  154.800f, 161.000f, 163.867f, 84.733f,
                   90.933f,  114.758f, 143.455f, 110.091f, 135.543f, 123.457f, 126.000f, 115.545f,
                   144.242f, 141.909f, 174.267f, 95.133f,  161.067f, 174.867f, 78.667f,  144.600f,
                   125.424f, 123.091f, 120.758f, 106.943f, 146.057f, 170.543f, 129.909f, 127.576f,
                   125.242f, 174.333f, 78.133f,  101.400f}},
};

TEST(Resize, AgreesWithPyTorch) {
  for (const auto& [from_width, from_height, width, height, expected] : kFromPyTorch) {
    const Picture resized = resize(patterned(from_width, from_height), width, height);
    ASSERT_EQ(resized.rgb.size(), expected.size());
    for (std::size_t i = 0; i < expected.size(); ++i) {
      EXPECT_NEAR(resized.rgb[i], expected[i], 0.502) << "value " << i;
    }
  }
}

TEST(Resize, FollowsTheDefinitionAtAnySize) {
  for (std::uint64_t i = 0; i < 60; ++i) {
    Random random(3, Purpose("sizes"), i);
    const auto side = [&] { return static_cast<int>(1 + random.below(40)); };
    const int width = side(), height = side();
    const Picture picture = noise(side(), side(), i);
    const Picture resized = resize(picture, width, height);
    ASSERT_EQ(resized.width, width);
    ASSERT_EQ(resized.height, height);
    for (int k = 0; k < 40; ++k) {
      const int x = static_cast<int>(random.below(static_cast<std::uint64_t>(width)));
      const int y = static_cast<int>(random.below(static_cast<std::uint64_t>(height)));
      const int c = static_cast<int>(random.below(3));
      EXPECT_NEAR(resized.at(x, y)[c], defined_value(picture, width, height, x, y, c), 0.502)
          << picture.width << " x " << picture.height << " to " << width << " x " << height;
    }
  }
}

TEST(Resize, KeepsAFlatColourAndItsExtremes) {
  for (const int level : {0, 1, 127, 254, 255}) {
    Picture picture(301, 203);
    std::fill(picture.rgb.begin(), picture.rgb.end(), static_cast<std::uint8_t>(level));
    for (const int side : {1, 7, 64, 300, 500}) {
      const Picture resized = resize(picture, side, side);
      EXPECT_TRUE(std::all_of(resized.rgb.begin(), resized.rgb.end(),
                              [&](int value) { return value == level; }))
          << level << " at " << side;
    }
  }
}

TEST(Resize, ToTheSameSizeChangesNothing) {
  const Picture picture = noise(23, 11, 1);
  EXPECT_EQ(resize(picture, 23, 11), picture);
}

TEST(Resize, OfNothingOrToNothingIsAProgrammingError) {
  EXPECT_THROW(resize(Picture(), 4, 4), std::logic_error);
  EXPECT_THROW(resize(Picture(4, 4), 0, 4), std::logic_error);
  EXPECT_THROW(fit_square(Picture(4, 4), 0), std::logic_error);
}

TEST(ResizeSquare, OfWholePixelsIsTheResizedPart) {
  const Picture picture = noise(50, 40, 7);
  // Enlarging looks at no pixel beyond the nearest, so inside the part there is no difference.
  const Picture part = resize(cut(picture, 10, 5, 20, 20), 40, 40);
  const Picture square = resize_square(picture, 10, 5, 20, 40);
  for (int y = 1; y < 39; ++y) {
    for (int x = 1; x < 39; ++x) {
      for (int c = 0; c < 3; ++c) EXPECT_EQ(square.at(x, y)[c], part.at(x, y)[c]);
    }
  }
  EXPECT_EQ(resize_square(noise(30, 30, 8), 0, 0, 30, 11), resize(noise(30, 30, 8), 11, 11));
  EXPECT_EQ(resize_square(picture, 10, 0, 40, 40), cut(picture, 10, 0, 40, 40));
}

TEST(ResizeSquare, MovesByPartsOfAPixel) {
  Picture slope(64, 8);
  for (int y = 0; y < 8; ++y) {
    for (int x = 0; x < 64; ++x) std::fill_n(slope.at(x, y), 3, static_cast<std::uint8_t>(4 * x));
  }
  for (const double x : {3.0, 3.25, 3.5, 3.75, 20.5}) {
    const Picture square = resize_square(slope, x, 1, 6, 6);
    EXPECT_NEAR(square.at(2, 2)[0], 4 * (x + 2), 0.51) << x;
  }
}

TEST(ResizeSquare, BeyondThePictureIsAProgrammingError) {
  for (const auto& [x, y, side] : {std::tuple{-0.1, 0.0, 4.0},
                                   {0.0, -1.0, 4.0},
                                   {7.0, 0.0, 4.0},
                                   {0.0, 5.0, 4.0},
                                   {0.0, 0.0, 0.0}}) {
    EXPECT_THROW(resize_square(Picture(10, 8), x, y, side, 4), std::logic_error);
  }
}

TEST(FitSquare, IsTheCentreOfTheResizedPicture) {
  struct Geometry {
    int width, height, size, resized_width, resized_height, left, top;
  };
  // Sides as int(size * long / short), offsets as Python's round((side - size) / 2).
  const Geometry cases[] = {
      {500, 375, 256, 341, 256, 42, 0},  // round(42.5) = 42
      {375, 500, 224, 224, 298, 0, 37}, {101, 100, 50, 50, 50, 0, 0},
      {103, 100, 100, 103, 100, 2, 0},  // round(1.5) = 2
      {32, 33, 32, 32, 33, 0, 0},       // round(0.5) = 0
      {10, 37, 20, 20, 74, 0, 27},
  };
  for (const auto& c : cases) {
    const Picture picture = noise(c.width, c.height, 5);
    const Picture whole = resize(picture, c.resized_width, c.resized_height);
    EXPECT_EQ(fit_square(picture, c.size), cut(whole, c.left, c.top, c.size, c.size))
        << c.width << " x " << c.height << " to " << c.size;
  }
}

TEST(FitSquare, OfASquareOfThatSizeChangesNothing) {
  const Picture picture = noise(32, 32, 2);
  EXPECT_EQ(fit_square(picture, 32), picture);
}

TEST(FitSquare, CopesWithALineOfPixels) {
  const Picture line = noise(60'000, 1, 3);
  const Picture square = fit_square(line, 224);
  EXPECT_EQ(square.width, 224);
  // 224 output columns span one input pixel: the middle of the line.
  EXPECT_EQ(square.at(112, 0)[1], square.at(112, 223)[1]);
}

}  // namespace
}  // namespace riffle

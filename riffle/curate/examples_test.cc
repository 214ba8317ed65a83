#include "riffle/curate/examples.h"

#include <algorithm>
#include <memory>
#include <vector>

#include <gtest/gtest.h>

#include "riffle/base/error.h"
#include "riffle/image/codec.h"

namespace riffle {
namespace {

Sample grey_sample(std::uint64_t index) {
  Picture picture(8, 8);
  std::ranges::fill(picture.rgb, static_cast<std::uint8_t>(index));
  Sample sample;
  sample.index = index;
  sample.picture.file = std::make_shared<const std::vector<std::byte>>(encode_png(picture));
  return sample;
}

// Returns the grey levels of the examples of a kept picture: the indices of the samples.
std::vector<int> levels(const Examples& examples, std::uint64_t of) {
  std::vector<int> found;
  for (const std::string& jpeg : examples.of(of)) {
    const auto picture = thumbnail(std::as_bytes(std::span(jpeg)));
    found.push_back(picture ? picture->rgb[0] : -1);
  }
  return found;
}

TEST(Examples, AreOfWhatAKeptPictureStandsForAndFollowItIntoAnother) {
  Examples examples;
  std::vector<Sample> samples;
  for (std::uint64_t i = 0; i < 6; ++i) samples.push_back(grey_sample(40 * i));
  // 40 and 80 repeat 0, then 120 takes 0's place; 160 repeats 200.
  examples.take(samples, std::vector<Repeat>{{40, "", 0, 2}, {80, "", 0, 3}, {160, "", 200, 2}});
  EXPECT_EQ(levels(examples, 0), (std::vector{40, 80}));
  EXPECT_EQ(levels(examples, 200), (std::vector{160}));
  EXPECT_EQ(levels(examples, 7), std::vector<int>());
  const std::vector<Repeat> taken_over = {{0, "", 120, 4}};
  examples.take({}, taken_over);
  EXPECT_EQ(levels(examples, 0), std::vector<int>());
  EXPECT_EQ(levels(examples, 120), (std::vector{40, 80}));
}

TEST(Examples, OfManyRepeatsAreFewFromAllOverTheStream) {
  Examples examples;
  int late = 0;
  for (std::uint64_t kept = 0; kept < 30; ++kept) {
    for (std::int64_t i = 1; i <= 60; ++i) {
      Sample sample = grey_sample(static_cast<std::uint64_t>(4 * i));
      sample.index = 1000 * (kept + 1) + static_cast<std::uint64_t>(i);
      const std::vector<Repeat> repeat = {{sample.index, "", 1000 * (kept + 1), i + 1}};
      examples.take({&sample, 1}, repeat);
    }
    const auto found = levels(examples, 1000 * (kept + 1));
    EXPECT_EQ(found.size(), Examples::kEach);
    for (const int level : found) late += level > 4 * 30;
  }
  // Half of them, give or take three standard deviations.
  EXPECT_NEAR(late, 45, 15);
}

TEST(Examples, AreOfThoseThatStandForMost) {
  Examples examples;
  const Sample sample = grey_sample(9);
  const auto repeat = [&](std::uint64_t of, std::int64_t count) {
    const std::vector<Repeat> repeats = {{9, "", of, count}};
    examples.take({&sample, 1}, repeats);
  };
  for (std::uint64_t i = 0; i < Examples::kMost; ++i) repeat(100 + i, i == 5 ? 4 : 8);
  repeat(1000, 3);
  EXPECT_TRUE(examples.of(1000).empty()) << "all others stand for more";
  repeat(1001, 5);
  EXPECT_FALSE(examples.of(1001).empty());
  EXPECT_TRUE(examples.of(105).empty()) << "it stood for least";
  EXPECT_FALSE(examples.of(104).empty());
}

TEST(Examples, AreSavedExactlyAndADamagedStateIsRefused) {
  Examples examples, again;
  const std::vector<Sample> samples = {grey_sample(50), grey_sample(100)};
  examples.take(samples, std::vector<Repeat>{{50, "", 3, 2}, {100, "", 3, 3}});
  NamedTensors state = examples.save();
  again.restore(state);
  EXPECT_EQ(again.of(3), examples.of(3));
  const std::vector<Repeat> more = {{3, "", 4, 5}};
  examples.take({}, more);
  again.take({}, more);
  EXPECT_EQ(again.of(4), examples.of(4));

  for (auto& [name, values] : state) {
    if (name == "numbers") values = integers_tensor(std::vector<std::int64_t>{-1});
  }
  EXPECT_THROW(again.restore(state), Error);
}

}  // namespace
}  // namespace riffle

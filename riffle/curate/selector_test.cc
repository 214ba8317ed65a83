#include "riffle/curate/selector.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numbers>
#include <set>

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "riffle/base/error.h"
#include "riffle/base/random.h"
#include "riffle/base/text.h"

namespace riffle {
namespace {

constexpr std::int64_t kDim = 16;

// A stream of features: scenes that come again, and frames like no other.
struct Features {
  std::vector<Sample> samples;
  at::Tensor rows;

  std::int64_t size() const { return std::ssize(samples); }
};

Features scenes(std::int64_t count, std::uint64_t scenes, double scatter, double junk = 0) {
  Features made{{}, at::empty({count, kDim})};
  std::vector<at::Tensor> centres;
  const auto direction = [](std::uint64_t number) {
    Random random(3, Purpose("direction"), number);
    at::Tensor row = at::empty({kDim});
    for (std::int64_t i = 0; i < kDim; ++i) row[i] = random.normal();
    return row;
  };
  for (std::uint64_t scene = 0; scene < scenes; ++scene) centres.push_back(direction(scene));
  Random random(4, Purpose("scenes"), 0);
  for (std::int64_t i = 0; i < count; ++i) {
    const bool is_junk = random.uniform() < junk;
    const std::uint64_t scene = random.below(scenes);
    const auto own = direction(1000 + static_cast<std::uint64_t>(i));
    made.rows[i] = is_junk ? own : centres[scene] + scatter * own;
    Sample sample;
    sample.index = static_cast<std::uint64_t>(i);
    sample.label = is_junk ? "junk" : cat("scene", scene);
    sample.key = cat("frame", i);
    made.samples.push_back(sample);
  }
  return made;
}

std::vector<Repeat> offer_all(Selector& selector, const Features& stream, std::int64_t batch,
                              std::int64_t from = 0) {
  std::vector<Repeat> repeats;
  for (std::int64_t begin = from; begin < stream.size(); begin += batch) {
    const std::int64_t count = std::min(batch, stream.size() - begin);
    const auto part =
        std::span(stream.samples)
            .subspan(static_cast<std::size_t>(begin), static_cast<std::size_t>(count));
    const auto change = selector.offer(part, stream.rows.narrow(0, begin, count));
    repeats.insert(repeats.end(), change.repeats.begin(), change.repeats.end());
  }
  return repeats;
}

std::map<std::string, std::int64_t> counts_by_label(const Selector& selector) {
  std::map<std::string, std::int64_t> counts;
  for (const auto slot : selector.slots()) {
    counts[selector.kept(slot).label] += selector.kept(slot).count;
  }
  return counts;
}

TEST(Selector, KeepsOneOfEachSceneAndCountsTheRest) {
  const Features stream = scenes(300, 6, 0.05);
  Selector selector({.keep = 6, .dim = kDim, .batch = 20});
  const auto repeats = offer_all(selector, stream, 20);
  EXPECT_EQ(selector.size(), 6);
  EXPECT_EQ(repeats.size(), 294u);
  std::map<std::string, std::int64_t> seen;
  for (const Sample& sample : stream.samples) ++seen[sample.label];
  EXPECT_EQ(counts_by_label(selector), seen);
  for (const Repeat& repeat : repeats) {
    EXPECT_EQ(stream.samples[repeat.index].label, stream.samples[repeat.of].label);
    EXPECT_EQ(stream.samples[repeat.index].key, repeat.key);
  }
}

TEST(Selector, JunkDoesNotFillIt) {
  const Features stream = scenes(2000, 12, 0.3, /*junk=*/0.2);
  Selector selector({.keep = 48, .dim = kDim, .batch = 50});
  offer_all(selector, stream, 50);
  std::set<std::string> kept_scenes;
  std::int64_t junk = 0;
  for (const auto slot : selector.slots()) {
    const std::string& label = selector.kept(slot).label;
    if (label == "junk") ++junk;
    if (label != "junk") kept_scenes.insert(label);
  }
  EXPECT_EQ(kept_scenes.size(), 12u);
  EXPECT_LT(junk, 40) << "by distance alone it would be nearly all of them";
}

TEST(Selector, NearRefusesRepeatsAndNothingElse) {
  Features stream = scenes(200, 1, 0, /*junk=*/1);
  // Every fourth is another one again: of its own batch, or of an earlier one.
  std::vector<std::uint64_t> first(200);
  std::int64_t repeated = 0;
  for (std::int64_t i = 0; i < 200; ++i) {
    const std::int64_t of = i % 4 < 3 ? i : i < 100 ? i - 1 : i - 62;
    if (of != i) stream.rows[i] = 2.5 * stream.rows[of];
    if (of != i) ++repeated;
    first[static_cast<std::size_t>(i)] = static_cast<std::uint64_t>(of);
  }
  Selector selector({.keep = 200, .near = 1e-6, .dim = kDim, .batch = 16});
  const auto repeats = offer_all(selector, stream, 16);
  EXPECT_EQ(selector.size(), 200 - repeated);
  ASSERT_EQ(std::ssize(repeats), repeated);
  for (const Repeat& repeat : repeats) EXPECT_EQ(repeat.of, first[repeat.index]);
}

// As a row of `angles` degrees in the first two dimensions.
Features at_angles(const std::vector<double>& angles) {
  Features stream = scenes(std::ssize(angles), 1, 0);
  stream.rows.zero_();
  for (std::size_t i = 0; i < angles.size(); ++i) {
    const double angle = angles[i] * std::numbers::pi / 180;
    stream.rows[static_cast<std::int64_t>(i)][0] = std::cos(angle);
    stream.rows[static_cast<std::int64_t>(i)][1] = std::sin(angle);
  }
  return stream;
}

TEST(Selector, NearLooksOnlyAtPicturesThatAreStillKept) {
  // Of 0 and 20 degrees one leaves, and then comes what is near to both, and nearest to that one.
  const double near = 1 - std::cos(16 * std::numbers::pi / 180);
  for (const double other : {5.0, 15.0}) {
    Selector selector({.keep = 2, .near = near, .dim = kDim, .batch = 3});
    const Features stream = at_angles({0, 20, 90, other, other, 180});
    const auto repeats = offer_all(selector, stream, 3);
    std::int64_t counted = 0;
    std::set<std::uint64_t> kept;
    for (const auto slot : selector.slots()) {
      counted += selector.kept(slot).count;
      kept.insert(selector.kept(slot).index);
    }
    EXPECT_EQ(counted, 6);
    ASSERT_EQ(repeats.size(), 4u);
    EXPECT_THAT(repeats[0].index, testing::AnyOf(0u, 1u));
    EXPECT_EQ(repeats[1].of, repeats[0].of) << "the one of the two that stayed";
    EXPECT_EQ(repeats[2].of, repeats[0].of);
  }
}

TEST(Selector, NearAsFarAsPossibleKeepsTheFirstPictureAlone) {
  Selector selector({.keep = 3, .near = 2, .dim = kDim, .batch = 2});
  const Features stream = at_angles({0, 100, 179, 200, 300, 10});
  const auto repeats = offer_all(selector, stream, 2);
  EXPECT_EQ(selector.size(), 1);
  EXPECT_EQ(selector.kept(selector.slots().front()).count, 6);
  ASSERT_EQ(repeats.size(), 5u);
  for (const Repeat& repeat : repeats) EXPECT_EQ(repeat.of, 0u);
}

TEST(Selector, NearIsExactAmongManyAtNearlyTheSameDistance) {
  // Forty rows at distances of 1e-9 apart around the limit, which float32 cannot tell apart.
  Features stream = scenes(41, 1, 0, /*junk=*/1);
  const double near = 1e-4;
  for (std::int64_t i = 0; i <= 40; ++i) {
    const double angle = i == 0 ? 0 : std::acos(1 - near - (i - 20.5) * 1e-7);
    stream.rows[i].zero_();
    stream.rows[i][0] = std::cos(angle);
    stream.rows[i][1 + i % 15] = std::sin(angle);
  }
  stream.rows = stream.rows.to(at::kFloat);
  Selector selector({.keep = 41, .near = near, .dim = kDim, .batch = 1});
  const auto repeats = offer_all(selector, stream, 1);
  const at::Tensor exact = stream.rows.to(at::kDouble);
  const at::Tensor distance = 1 - at::mv(exact, exact[0]) / exact.norm(2, 1) / exact[0].norm();
  for (std::int64_t i = 1; i <= 40; ++i) {
    const bool is_repeat = std::ranges::any_of(repeats, [&](const Repeat& r) {
      return r.index == static_cast<std::uint64_t>(i) && r.of == 0;
    });
    EXPECT_EQ(is_repeat, distance[i].item<double>() <= near) << i;
  }
}

TEST(Selector, RepeatsThatNearRefusesWeighAsMuchAsMergedOnes) {
  // One scene that comes ten times, then lone frames, more than there is room for.
  Features stream = scenes(40, 40, 0);
  for (std::int64_t i = 1; i < 10; ++i) stream.rows[i] = stream.rows[0];
  Selector selector({.keep = 8, .near = 1e-5, .dim = kDim, .batch = 4});
  offer_all(selector, stream, 4);
  bool held = false;
  for (const auto slot : selector.slots()) held |= selector.kept(slot).count >= 10;
  EXPECT_TRUE(held);
}

TEST(Selector, ContinuesAfterARestoreAsIfNothingHadHappened) {
  const Features stream = scenes(400, 10, 0.4, 0.1);
  for (const double near : {-1.0, 0.05}) {
    const SelectorConfig config{.keep = 20, .near = near, .dim = kDim, .batch = 16};
    Selector whole(config);
    offer_all(whole, stream, 16);
    for (const std::int64_t stop : {16, 160, 384}) {
      Features first{{stream.samples.begin(), stream.samples.begin() + stop}, stream.rows};
      Selector before(config);
      offer_all(before, first, 16);
      Selector after(config);
      after.restore(before.save());
      offer_all(after, stream, 16, stop);
      ASSERT_EQ(after.slots(), whole.slots());
      for (const auto slot : whole.slots()) {
        EXPECT_EQ(after.kept(slot).index, whole.kept(slot).index);
        EXPECT_EQ(after.kept(slot).count, whole.kept(slot).count);
        EXPECT_EQ(after.kept(slot).key, whole.kept(slot).key);
      }
    }
  }
}

TEST(Selector, RefusesADamagedState) {
  const SelectorConfig config{.keep = 4, .dim = kDim, .batch = 4};
  Selector selector(config);
  offer_all(selector, scenes(12, 12, 0), 4);
  NamedTensors state = selector.save();
  for (auto& [name, tensor] : state) {
    if (name == "slots") tensor[0] = 99;
  }
  EXPECT_THROW(Selector(config).restore(state), Error);
}

TEST(Selector, BlackPicturesAreRepeatsOfOneAnother) {
  Features stream = scenes(20, 20, 0);
  stream.rows.narrow(0, 5, 10).zero_();
  Selector selector({.keep = 11, .dim = kDim, .batch = 20});
  offer_all(selector, stream, 20);
  std::int64_t most = 0;
  for (const auto slot : selector.slots()) most = std::max(most, selector.kept(slot).count);
  EXPECT_EQ(most, 10);
}

}  // namespace
}  // namespace riffle

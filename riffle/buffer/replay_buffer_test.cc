#include "riffle/buffer/replay_buffer.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include <gmock/gmock.h>
#include <torch/types.h>

#include "riffle/base/error.h"
#include "riffle/base/log.h"

namespace riffle {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Pair;
using testing::ThrowsMessage;
using testing::UnorderedElementsAre;

constexpr int kSize = 4;
constexpr std::int64_t kDim = 8;

BufferConfig config_of(const std::string& policy, std::int64_t capacity) {
  BufferConfig config;
  config.policy = policy;
  config.capacity = std::to_string(capacity);
  return config;
}

// Its picture tells its index.
Sample sample_of(std::uint64_t index, std::int64_t clip = kNoClip, std::string label = "") {
  Sample sample;
  sample.picture = Picture(kSize, kSize);
  std::fill(sample.picture.rgb.begin(), sample.picture.rgb.end(), static_cast<std::uint8_t>(index));
  sample.index = index;
  sample.clip = clip;
  sample.label = std::move(label);
  return sample;
}

std::vector<Sample> samples_of(std::uint64_t first, int count) {
  std::vector<Sample> samples;
  for (int i = 0; i < count; ++i) {
    const auto index = first + static_cast<std::uint64_t>(i);
    samples.push_back(sample_of(index, static_cast<std::int64_t>(index / 3),
                                "class" + std::to_string(index % 5)));
  }
  return samples;
}

at::Tensor features_of(std::uint64_t seed, std::int64_t count) {
  Random random(seed, Purpose("features"), 0);
  auto features = torch::empty({count, kDim});
  auto values = features.accessor<float, 2>();
  for (std::int64_t i = 0; i < count; ++i) {
    for (std::int64_t j = 0; j < kDim; ++j) values[i][j] = random.normal();
  }
  return features / features.norm(2, 1, true);
}

std::vector<std::uint64_t> indices(const ReplayBuffer& buffer, const std::vector<Slot>& slots) {
  std::vector<std::uint64_t> found;
  for (const Slot slot : slots) found.push_back(buffer.info(slot).index);
  return found;
}

// Every live slot shows the picture that came with its index.
void expect_pictures_belong(const ReplayBuffer& buffer) {
  const auto pictures = buffer.pictures(buffer.live());
  for (std::size_t i = 0; i < buffer.live().size(); ++i) {
    const auto value = pictures.tensor[pictures.indices[i]].flatten()[0].item<int>();
    EXPECT_NEAR(value, static_cast<int>(buffer.info(buffer.live()[i]).index % 256), 2);
  }
}

TEST(ReplayBuffer, FillsThenKeepsTheNewestUnderFifo) {
  ReplayBuffer buffer(config_of("fifo", 6), 4, kSize, kDim, 1);
  buffer.insert(samples_of(0, 4));
  EXPECT_EQ(buffer.size(), 4);
  EXPECT_FALSE(buffer.full());
  buffer.insert(samples_of(4, 4));
  EXPECT_TRUE(buffer.full());
  EXPECT_THAT(indices(buffer, buffer.live()), UnorderedElementsAre(2, 3, 4, 5, 6, 7));
  for (std::uint64_t first = 8; first < 80; first += 3) {
    buffer.insert(samples_of(first, 3));
    EXPECT_EQ(buffer.size(), 6);
    expect_pictures_belong(buffer);
  }
  for (const Slot slot : buffer.live()) EXPECT_LT(slot, 10);  // slots are used again
}

TEST(ReplayBuffer, ConventionalGivesTheNewestBatchInOrder) {
  ReplayBuffer buffer(config_of("none", 1000), 4, kSize, kDim, 1);
  EXPECT_EQ(buffer.capacity(), 4);
  Random random(1, Purpose("sample"), 0);
  for (std::uint64_t first = 0; first < 40; first += 4) {
    buffer.insert(samples_of(first, 4));
    EXPECT_THAT(indices(buffer, buffer.sample(4, random).slots),
                ElementsAre(first, first + 1, first + 2, first + 3));
  }
  buffer.insert(samples_of(40, 1));
  EXPECT_THAT(indices(buffer, buffer.sample(2, random).slots), ElementsAre(39, 40));
}

TEST(ReplayBuffer, DrawsAreDistinctUniformAndRepeatable) {
  ReplayBuffer buffer(config_of("fifo", 20), 20, kSize, kDim, 1);
  buffer.insert(samples_of(0, 20));
  std::vector<int> firsts(20, 0), counts(20, 0);
  constexpr int kDraws = 4000, kTaken = 5;
  for (int i = 0; i < kDraws; ++i) {
    Random random(7, Purpose("sample"), static_cast<std::uint64_t>(i));
    const auto draw = buffer.sample(kTaken, random);
    EXPECT_EQ(std::set<Slot>(draw.slots.begin(), draw.slots.end()).size(), 5u);
    for (const Slot slot : draw.slots) ++counts[static_cast<std::size_t>(slot)];
    ++firsts[static_cast<std::size_t>(draw.slots[0])];
    Random again(7, Purpose("sample"), static_cast<std::uint64_t>(i));
    ASSERT_EQ(buffer.sample(kTaken, again).slots, draw.slots);
  }
  for (std::size_t i = 0; i < 20; ++i) {
    EXPECT_NEAR(counts[i], kDraws * 0.25, 4.5 * std::sqrt(kDraws * 0.25 * 0.75)) << i;
    EXPECT_NEAR(firsts[i], kDraws * 0.05, 4.5 * std::sqrt(kDraws * 0.05 * 0.95)) << i;
  }
  Random random(7, Purpose("sample"), 0);
  const auto all = buffer.sample(20, random).slots;
  EXPECT_EQ(std::set<Slot>(all.begin(), all.end()).size(), 20u);
}

TEST(ReplayBuffer, MinRedDropsRepeatsWhenFeaturesComeOnArrival) {
  auto config = config_of("minred", 8);
  config.features = FeatureTime::arrival;
  config.tie = TieRule::newer;
  ReplayBuffer buffer(config, 4, kSize, kDim, 1);
  const auto distinct = torch::eye(kDim);
  buffer.insert(samples_of(0, 4), distinct.slice(0, 0, 4));
  buffer.insert(samples_of(4, 4), distinct.slice(0, 4, 8));
  buffer.insert(samples_of(8, 4), distinct.slice(0, 0, 4));
  EXPECT_THAT(indices(buffer, buffer.live()), UnorderedElementsAre(0, 1, 2, 3, 4, 5, 6, 7));
  EXPECT_THAT(buffer.stats().evictions,
              UnorderedElementsAre(Pair("redundant", 4), Pair("oldest", 0), Pair("draw_limit", 0)));
}

TEST(ReplayBuffer, ABufferOfOneBatchMergesPairsOrSaysThatTheOldestLeave) {
  for (const FeatureTime features : {FeatureTime::arrival, FeatureTime::draw}) {
    auto config = config_of("merge", 4);
    config.features = features;
    set_log_level(LogLevel::warnings);
    testing::internal::CaptureStderr();
    ReplayBuffer buffer(config, 4, kSize, kDim, 1);
    const std::string said = testing::internal::GetCapturedStderr();
    set_log_level(LogLevel::info);
    const bool late = features == FeatureTime::draw;
    EXPECT_EQ(said.find("the oldest will leave") != std::string::npos, late) << said;
    for (std::uint64_t batch = 0; batch < 5; ++batch) {
      buffer.insert(samples_of(4 * batch, 4), late ? at::Tensor() : features_of(batch, 4));
    }
    const auto evictions = buffer.stats().evictions;
    EXPECT_EQ(evictions.at(late ? "oldest" : "merged"), 16);
  }
}

// Fills a buffer of two batches and draws all it holds.
Draw fill_and_draw(ReplayBuffer& buffer, int batch, Random& random) {
  buffer.insert(samples_of(0, batch));
  buffer.insert(samples_of(static_cast<std::uint64_t>(batch), batch));
  return buffer.sample(2 * batch, random);
}

TEST(ReplayBuffer, MinRedProtectsNewSamplesUntilTheyAreDrawn) {
  ReplayBuffer buffer(config_of("minred", 8), 4, kSize, kDim, 1);
  Random random(1, Purpose("sample"), 0);
  const auto draw = fill_and_draw(buffer, 4, random);
  // Even and odd indices look the same among themselves, apart from a little.
  auto features = torch::zeros({8, kDim});
  for (std::size_t i = 0; i < 8; ++i) {
    const auto index = static_cast<std::int64_t>(buffer.info(draw.slots[i]).index);
    features[static_cast<std::int64_t>(i)][index % 2] = 1;
    features[static_cast<std::int64_t>(i)][2 + index % 4] = 0.1;
  }
  buffer.track(draw, features);
  EXPECT_EQ(buffer.stats().tracked_share, 1);
  buffer.insert(samples_of(8, 4));
  // Indices i and i + 4 are equal: the older one left.
  EXPECT_THAT(indices(buffer, buffer.live()), UnorderedElementsAre(4, 5, 6, 7, 8, 9, 10, 11));
  EXPECT_EQ(buffer.stats().tracked_share, 0.5);
}

TEST(ReplayBuffer, TrackPassesOverSlotsThatHoldAnotherSampleByNow) {
  ReplayBuffer buffer(config_of("minred", 4), 2, kSize, kDim, 1);
  Random random(1, Purpose("sample"), 0);
  const auto draw = fill_and_draw(buffer, 2, random);
  buffer.insert(samples_of(4, 2));  // 0 and 1 leave
  buffer.insert(samples_of(6, 2));  // 2 and 3 leave, the slots of 0 and 1 are used again
  buffer.insert(samples_of(8, 1));
  buffer.sample(4, random);  // the new samples are drawn as well
  buffer.track(draw, torch::full({4, kDim}, NAN));
  EXPECT_EQ(buffer.stats().tracked_share, 0);

  const auto fresh = buffer.sample(4, random);
  buffer.insert(samples_of(9, 2));
  buffer.track(fresh, features_of(1, 4));
  EXPECT_EQ(buffer.stats().tracked_share, 0.5);
}

TEST(ReplayBuffer, StatsTellAgesDrawsClipsAndLabels) {
  ReplayBuffer buffer(config_of("fifo", 4), 3, kSize, kDim, 1);
  EXPECT_EQ(buffer.stats().size, 0);
  buffer.insert(std::vector<Sample>{sample_of(0, 5, "a"), sample_of(1, 5, "b"), sample_of(2)});
  EXPECT_EQ(buffer.distinct_clips(), 1);
  buffer.insert(std::vector<Sample>{sample_of(3, 6, "b"), sample_of(4, 7, "b")});
  EXPECT_EQ(buffer.distinct_clips(), 3);
  buffer.insert(std::vector<Sample>{sample_of(5, 7, "c")});
  EXPECT_EQ(buffer.distinct_clips(), 2);
  Random random(1, Purpose("sample"), 0);
  buffer.sample(4, random);
  buffer.sample(2, random);
  const auto stats = buffer.stats();
  EXPECT_EQ(stats.size, 4);
  EXPECT_EQ(stats.capacity, 4);
  EXPECT_EQ(stats.mean_age, 1.5);
  EXPECT_EQ(stats.max_age, 3);
  EXPECT_EQ(stats.mean_draws, 1.5);
  EXPECT_EQ(stats.distinct_clips, 2);
  EXPECT_THAT(stats.evictions, ElementsAre(Pair("oldest", 2)));
  EXPECT_THAT(buffer.label_counts(), ElementsAre(Pair("", 1), Pair("b", 2), Pair("c", 1)));
}

TEST(ReplayBuffer, MisuseIsRefusedAndChangesNothing) {
  ReplayBuffer buffer(config_of("minred", 6), 3, kSize, kDim, 1);
  buffer.insert(samples_of(0, 3));
  auto large = samples_of(3, 1);
  large[0].picture = Picture(kSize, kSize + 1);
  EXPECT_THROW(buffer.insert(large), std::logic_error);
  EXPECT_THROW(buffer.insert(samples_of(3, 4)), std::logic_error);
  EXPECT_THROW(buffer.insert(samples_of(3, 2), features_of(0, 3)), std::logic_error);
  EXPECT_THROW(buffer.insert(samples_of(3, 2), torch::full({2, kDim}, INFINITY)), Error);
  Random random(1, Purpose("sample"), 0);
  EXPECT_THROW(buffer.sample(4, random), std::logic_error);
  EXPECT_THROW(buffer.info(3), std::logic_error);
  EXPECT_THROW(buffer.pictures(std::vector<Slot>{8}), std::logic_error);
  const auto draw = buffer.sample(2, random);
  EXPECT_THROW(buffer.track(draw, features_of(0, 3)), std::logic_error);
  buffer.insert({});
  EXPECT_THAT(indices(buffer, buffer.live()), ElementsAre(0, 1, 2));
  buffer.insert(samples_of(3, 3), features_of(0, 3));
  EXPECT_THAT(indices(buffer, buffer.live()), ElementsAre(0, 1, 2, 3, 4, 5));
  EXPECT_EQ(buffer.stats().max_age, 5);
}

TEST(ReplayBuffer, RefusesWhatCannotWork) {
  EXPECT_THAT([] { ReplayBuffer(config_of("fifo", 3), 4, kSize, kDim, 1); },
              ThrowsMessage<Error>(HasSubstr("buffer.capacity")));
  EXPECT_THAT([] { ReplayBuffer(config_of("fifo", 1 << 30), 4, 1024, kDim, 1); },
              ThrowsMessage<Error>(HasSubstr("is available")));
  auto config = config_of("minred", 8);
  config.momentum = 1;
  EXPECT_THAT([&] { ReplayBuffer(config, 4, kSize, kDim, 1); },
              ThrowsMessage<Error>(HasSubstr("buffer.momentum")));
}

TEST(ReplayBuffer, CapacityCanBeGivenInBytes) {
  auto config = config_of("fifo", 0);
  config.capacity = "100KB";
  ReplayBuffer buffer(config, 4, kSize, kDim, 1);
  EXPECT_GT(buffer.capacity(), 100);
  EXPECT_LT(buffer.capacity(), 100'000 / (kSize * kSize * 3));
}

// One stream batch as the learner does it, at a given time, with everything that can be seen
// written down.
std::vector<std::int64_t> step(ReplayBuffer& buffer, std::uint64_t time) {
  Random choice(99, Purpose("history"), time);
  const auto count = 1 + static_cast<int>(choice.below(5));
  const bool on_arrival = choice.chance(0.5f);
  buffer.insert(samples_of(time * 5, count), on_arrival ? features_of(time, count) : at::Tensor());
  std::vector<std::int64_t> seen(buffer.live());
  for (std::uint64_t update = 0; update < 2; ++update) {
    Random random(5, Purpose("sample"), time * 2 + update);
    const auto draw = buffer.sample(std::min<std::int64_t>(4, buffer.size()), random);
    seen.insert(seen.end(), draw.slots.begin(), draw.slots.end());
    for (const auto index : indices(buffer, draw.slots)) {
      seen.push_back(static_cast<std::int64_t>(index));
    }
    buffer.track(
        draw, features_of(1000 + time * 2 + update, static_cast<std::int64_t>(draw.slots.size())));
  }
  for (const auto& [reason, evicted] : buffer.stats().evictions) seen.push_back(evicted);
  seen.push_back(buffer.distinct_clips());
  return seen;
}

void expect_equal(const NamedTensors& a, const NamedTensors& b) {
  ASSERT_EQ(a.size(), b.size());
  for (std::size_t i = 0; i < a.size(); ++i) {
    EXPECT_EQ(a[i].first, b[i].first);
    EXPECT_TRUE(a[i].second.equal(b[i].second)) << a[i].first;
  }
}

TEST(ReplayBuffer, TheNewestBatchIsHeldUntilTheNextAndDrawnApart) {
  for (const char* policy : {"fifo", "reservoir", "minred", "merge"}) {
    ReplayBuffer buffer(config_of(policy, 16), 4, kSize, kDim, 1);
    buffer.hold_newest();
    for (std::uint64_t batch = 0; batch < 12; ++batch) {
      buffer.insert(samples_of(4 * batch, 4), features_of(batch, 4));
      if (batch < 4) continue;
      EXPECT_EQ(buffer.size(), 20);
      const auto held = indices(buffer, buffer.live());
      for (std::uint64_t i = 0; i < 4; ++i) EXPECT_THAT(held, testing::Contains(4 * batch + i));
      Random random(5, Purpose("sample"), batch);
      Random same = random;
      const Draw draw = buffer.sample_with_fresh(12, 3, random);
      const auto drawn = indices(buffer, draw.slots);
      EXPECT_EQ(std::set(drawn.begin(), drawn.end()).size(), 12u) << "all distinct";
      for (std::size_t i = 0; i < drawn.size(); ++i) EXPECT_EQ(drawn[i] >= 4 * batch, i < 3) << i;

      ReplayBuffer restored(config_of(policy, 16), 4, kSize, kDim, 1);
      restored.hold_newest();
      restored.restore(buffer.save());
      EXPECT_EQ(restored.sample_with_fresh(12, 3, same).slots, draw.slots);
      ReplayBuffer plain(config_of(policy, 16), 4, kSize, kDim, 1);
      EXPECT_THAT([&] { plain.restore(buffer.save()); },
                  ThrowsMessage<Error>(HasSubstr("20 samples in a buffer of 16")));
      expect_pictures_belong(buffer);
    }
  }
}

// Every live slot has the picture of the sample that came before it in its batch of five.
void expect_partners_belong(const ReplayBuffer& buffer) {
  const auto pictures = buffer.pictures(buffer.live());
  ASSERT_EQ(pictures.second.size(), buffer.live().size());
  for (std::size_t i = 0; i < buffer.live().size(); ++i) {
    const auto value = pictures.tensor[pictures.second[i]].flatten()[0].item<int>();
    const auto index = static_cast<int>(buffer.info(buffer.live()[i]).index);
    EXPECT_NEAR(value, (index % 5 == 0 ? index + 4 : index - 1) % 256, 2);
  }
}

TEST(ReplayBuffer, PairsStayTogetherAndAreSavedTogether) {
  for (const Storage storage : {Storage::raw, Storage::jpeg}) {
    auto config = config_of("reservoir", 12);
    config.storage = storage;
    config.pairs = true;
    ReplayBuffer buffer(config, 5, kSize, kDim, 1);
    const std::vector<std::int64_t> partners = {4, 0, 1, 2, 3};
    for (std::uint64_t time = 0; time < 8; ++time) {
      const auto batch = samples_of(5 * time, 5);
      std::vector<at::Tensor> pictures;
      for (const Sample& sample : batch) {
        pictures.push_back(
            torch::full({kSize, kSize, 3}, static_cast<std::int64_t>(sample.index), torch::kByte));
      }
      const auto own = [&](const Pictures& given) {
        EXPECT_EQ(given.indices.size(), 5u) << "features are of the samples' own pictures";
        return at::Tensor();
      };
      buffer.insert(batch, torch::stack(pictures), own, partners);
      expect_pictures_belong(buffer);
      expect_partners_belong(buffer);
    }
    ReplayBuffer restored(config, 5, kSize, kDim, 1);
    restored.restore(buffer.save());
    const auto stored = buffer.stored(buffer.live());
    EXPECT_EQ(stored.size(1), buffer.stored_bytes());
    restored.put_stored(buffer.live(), stored);
    expect_pictures_belong(restored);
    expect_partners_belong(restored);

    EXPECT_THROW(restored.put_stored(buffer.live(), stored.narrow(1, 0, stored.size(1) / 2)),
                 Error);
    auto single = config;
    single.pairs = false;
    EXPECT_THAT([&] { ReplayBuffer(single, 5, kSize, kDim, 1).restore(buffer.save()); },
                ThrowsMessage<Error>(HasSubstr("2 pictures of each sample, not 1")));
  }
}

TEST(ReplayBuffer, ASampleInsertedWithoutAPartnerIsItsOwn) {
  auto config = config_of("fifo", 6);
  config.pairs = true;
  ReplayBuffer buffer(config, 4, kSize, kDim, 1);
  buffer.insert(samples_of(3, 4));
  const auto pictures = buffer.pictures(buffer.live());
  for (std::size_t i = 0; i < 4; ++i) {
    EXPECT_TRUE(pictures.tensor[pictures.second[i]].equal(pictures.tensor[pictures.indices[i]]));
  }
}

TEST(ReplayBuffer, HeavySamplesAreDrawnMoreOftenWhenAskedTo) {
  for (const DrawRule rule : {DrawRule::uniform, DrawRule::weight}) {
    auto config = config_of("merge", 8);
    config.draw = rule;
    config.draw_exponent = 1;
    config.weight_limit = 0;
    config.merge_reach = 0;
    ReplayBuffer buffer(config, 4, kSize, kDim, 1);
    // Eight directions, one of which comes again and again.
    at::Tensor features = at::zeros({8, kDim});
    for (std::int64_t i = 0; i < 8; ++i) features[i][i % kDim] = i < kDim ? 1 : -1;
    buffer.insert(samples_of(0, 4), features.narrow(0, 0, 4));
    buffer.insert(samples_of(4, 4), features.narrow(0, 4, 4));
    for (std::uint64_t time = 2; time < 16; ++time) {
      buffer.insert(samples_of(4 * time, 4), features.narrow(0, 0, 1).expand({4, kDim}));
    }
    std::map<Slot, int> drawn;
    for (std::uint64_t update = 0; update < 400; ++update) {
      Random random(5, Purpose("sample"), update);
      ++drawn[buffer.sample(1, random).slots.front()];
    }
    int most = 0;
    for (const auto& [slot, count] : drawn) most = std::max(most, count);
    if (rule == DrawRule::weight) {
      EXPECT_NEAR(most, 400 * 57.0 / 64, 50);
    } else {
      EXPECT_LT(most, 100);
    }
  }
}

TEST(ReplayBuffer, SaysWhichSlotsGotAnotherSample) {
  ReplayBuffer buffer(config_of("fifo", 6), 4, kSize, kDim, 1);
  buffer.insert(samples_of(0, 4));
  EXPECT_THAT(indices(buffer, buffer.take_changed()), UnorderedElementsAre(0, 1, 2, 3));
  EXPECT_TRUE(buffer.take_changed().empty());
  buffer.insert(samples_of(4, 4));
  buffer.insert(samples_of(8, 4));
  buffer.insert(samples_of(12, 4));
  const auto changed = buffer.take_changed();
  EXPECT_THAT(indices(buffer, changed), UnorderedElementsAre(10, 11, 12, 13, 14, 15));
  EXPECT_EQ(std::set<Slot>(changed.begin(), changed.end()).size(), changed.size());
}

struct Case {
  std::string name;
  std::string policy;
  Storage storage = Storage::raw;
  std::int64_t draw_limit = 0;
  TieRule tie = TieRule::older;
  DrawRule draw = DrawRule::uniform;
  std::int64_t half_life = 0;

  BufferConfig config() const {
    auto made = config_of(policy, 24);
    made.draw = draw;
    made.half_life = half_life;
    made.storage = storage;
    made.draw_limit = draw_limit;
    made.tie = tie;
    return made;
  }
};

class ReplayBufferHistory : public testing::TestWithParam<Case> {};

TEST_P(ReplayBufferHistory, RestoredAtAnyTimeGoesOnTheSame) {
  const auto config = GetParam().config();
  for (const std::uint64_t stop : {0, 1, 4, 9, 23}) {
    ReplayBuffer whole(config, 5, kSize, kDim, 3);
    for (std::uint64_t time = 0; time < stop; ++time) step(whole, time);
    const auto saved = whole.save();
    const auto slots = whole.live();
    const auto pictures = whole.stored(slots);
    ReplayBuffer restored(config, 5, kSize, kDim, 3);
    // What it held before must not matter.
    for (std::uint64_t time = 50; time < 60; ++time) step(restored, time);
    restored.restore(saved);
    restored.put_stored(slots, pictures);
    for (std::uint64_t time = stop; time < stop + 30; ++time) {
      ASSERT_EQ(step(whole, time), step(restored, time)) << "time " << time;
      expect_pictures_belong(restored);
    }
    ReplayBuffer third(config, 5, kSize, kDim, 3);
    third.restore(whole.save());
    expect_equal(third.save(), whole.save());
  }
}

TEST_P(ReplayBufferHistory, HoldsItsInvariants) {
  ReplayBuffer buffer(GetParam().config(), 5, kSize, kDim, 3);
  for (std::uint64_t time = 0; time < 60; ++time) {
    step(buffer, time);
    EXPECT_LE(buffer.size(), buffer.capacity());
    const std::set<Slot> slots(buffer.live().begin(), buffer.live().end());
    EXPECT_EQ(slots.size(), buffer.live().size());
    std::set<std::int64_t> clips;
    for (const Slot slot : slots) clips.insert(buffer.info(slot).clip);
    EXPECT_EQ(buffer.distinct_clips(), static_cast<std::int64_t>(clips.size()));
    expect_pictures_belong(buffer);
  }
  EXPECT_TRUE(buffer.full());
}

TEST_P(ReplayBufferHistory, RefusesStateOfAnotherConfigurationOrWithAPartMissing) {
  const auto config = GetParam().config();
  ReplayBuffer buffer(config, 5, kSize, kDim, 3);
  for (std::uint64_t time = 0; time < 10; ++time) step(buffer, time);
  const auto state = buffer.save();
  EXPECT_THAT([&] { ReplayBuffer(config, 6, kSize, kDim, 3).restore(state); },
              ThrowsMessage<Error>(HasSubstr("another")));
  EXPECT_THAT([&] { ReplayBuffer(config, 5, kSize + 1, kDim, 3).restore(state); },
              ThrowsMessage<Error>(HasSubstr("picture size")));
  for (std::size_t missing = 0; missing < state.size(); ++missing) {
    auto part = state;
    part.erase(part.begin() + static_cast<std::ptrdiff_t>(missing));
    EXPECT_THROW(ReplayBuffer(config, 5, kSize, kDim, 3).restore(part), Error)
        << state[missing].first;
  }
  auto twice = state;
  for (auto& [name, tensor] : twice) {
    if (name == "live") tensor = tensor.clone().fill_(1);
  }
  EXPECT_THAT([&] { ReplayBuffer(config, 5, kSize, kDim, 3).restore(twice); },
              ThrowsMessage<Error>(HasSubstr("slot 1")));
}

INSTANTIATE_TEST_SUITE_P(
    All, ReplayBufferHistory,
    testing::Values(Case{"none", "none"}, Case{"fifo", "fifo"}, Case{"reservoir", "reservoir"},
                    Case{"minred", "minred"},
                    Case{"minred_newer", "minred", Storage::raw, 0, TieRule::newer},
                    Case{"minred_draw_limit", "minred", Storage::raw, 3},
                    Case{"minred_jpeg", "minred", Storage::jpeg}, Case{"merge", "merge"},
                    Case{"merge_weighted", "merge", Storage::raw, 0, TieRule::older,
                         DrawRule::weight, 40}),
    [](const auto& test) { return test.param.name; });

}  // namespace
}  // namespace riffle

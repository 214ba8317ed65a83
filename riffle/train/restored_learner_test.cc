// A learner that takes over the state of another continues as that one does.
#include <memory>
#include <string>
#include <vector>

#include <ATen/ATen.h>
#include <gtest/gtest.h>
#include <torch/types.h>

#include "riffle/base/error.h"
#include "riffle/stream/stream.h"
#include "riffle/train/testing/learner.h"

namespace riffle {
namespace {

void expect_continues_restored(const LearnerConfig& config, const std::string& uri = kTinyStream) {
  const auto stream = open_stream(uri);
  Learner whole(config, *stream);
  for (const int until : {0, 1, 4, 9}) {
    while (whole.update() < until) whole.advance();
    const auto state = whole.save();
    const auto again = open_stream(uri);
    Learner restored(config, *again);
    restored.restore(state);
    const std::vector<Slot> live = whole.buffer().live();
    restored.buffer().put_stored(live, whole.buffer().stored(live));
    EXPECT_EQ(restored.samples_seen(), whole.samples_seen());
    // One update of each; the whole run continues from there.
    const auto mine = restored.advance();
    const auto its = whole.advance();
    ASSERT_TRUE(mine && its);
    EXPECT_EQ(mine->loss, its->loss) << "after update " << until;
    EXPECT_EQ(mine->update, its->update);
    EXPECT_EQ(mine->samples_seen, its->samples_seen);
  }
}

class RestoredLearner : public testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(All, RestoredLearner,
                         testing::Values("fifo", "reservoir", "minred", "merge"));

TEST_P(RestoredLearner, ContinuesTheSame) {
  expect_continues_restored(tiny_learner(GetParam()));
  LearnerConfig drained = tiny_learner(GetParam());
  drained.train.drain = true;
  expect_continues_restored(drained, "synthetic:?frames=6&size=16&samples=45");
}

class RestoredLearnerMethods : public testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(All, RestoredLearnerMethods, testing::ValuesIn(objective_names()),
                         [](const auto& known) { return known.param; });

TEST_P(RestoredLearnerMethods, ContinuesTheSame) {
  auto config = tiny_learner("merge");
  config.model.objective = GetParam();
  expect_continues_restored(config);
}

TEST_P(RestoredLearner, ContinuesTheSameWithFreshSamples) {
  expect_continues_restored(fresh_learner(GetParam()));
}

TEST_P(RestoredLearner, ContinuesTheSameWithViewsOfTwoFrames) {
  auto config = tiny_learner(GetParam());
  config.augment.temporal = 3;
  expect_continues_restored(config);
}

TEST(RestoredLearnerState, ContinuesTheSameWhereWeightsFadeAndSteerDraws) {
  auto config = tiny_learner("merge");
  config.buffer.half_life = 11;  // in the middle of stream batches
  config.buffer.draw = DrawRule::weight;
  config.buffer.draw_limit = 2;
  expect_continues_restored(config);
}

TEST(RestoredLearnerState, ContinuesTheSameAverageOfTheEncoder) {
  auto config = tiny_learner("merge");
  config.model.average = 0.9;
  config.train.max_updates = 40;
  const at::Tensor pictures = at::rand({4, 3, 16, 16});
  // It moves every sixteenth update: saved before, at and after that.
  for (const int until : {15, 16, 17}) {
    const auto stream = open_stream(kTinyStream);
    Learner whole(config, *stream);
    while (whole.update() < until) whole.advance();
    const at::Tensor before = whole.objective().encode(pictures);
    const auto again = open_stream(kTinyStream);
    Learner restored(config, *again);
    restored.restore(whole.save());
    const std::vector<Slot> live = whole.buffer().live();
    restored.buffer().put_stored(live, whole.buffer().stored(live));
    for (Learner* learner : {&whole, &restored}) {
      while (learner->update() < 34) learner->advance();
    }
    const at::Tensor after = whole.objective().encode(pictures);
    EXPECT_TRUE(at::equal(restored.objective().encode(pictures), after)) << until;
    EXPECT_FALSE(at::equal(before, after)) << until;
  }
}

TEST_P(RestoredLearnerMethods, AGrowingRunEndsAsTheWholeOneFromBeforeOrAfterAGrowth) {
  const auto config = growing_learner(GetParam());
  const auto stream = open_stream(kTinyStream);
  Learner whole(config, *stream);
  struct Rest {
    std::int64_t from;
    std::unique_ptr<Stream> stream;
    std::unique_ptr<Learner> learner;
  };
  std::vector<Rest> rests;
  for (const std::int64_t from : {2, 3, 4, 13}) {
    while (whole.update() < from) whole.advance();
    auto& rest = rests.emplace_back(Rest{from, open_stream(kTinyStream), nullptr});
    rest.learner = std::make_unique<Learner>(config, *rest.stream);
    rest.learner->restore(whole.save());
    const std::vector<Slot> live = whole.buffer().live();
    rest.learner->buffer().put_stored(live, whole.buffer().stored(live));
  }
  updates_of(whole);
  const NamedTensors expected = whole.save();
  for (const Rest& rest : rests) {
    updates_of(*rest.learner);
    const NamedTensors state = rest.learner->save();
    ASSERT_EQ(state.size(), expected.size());
    for (std::size_t i = 0; i < state.size(); ++i) {
      if (state[i].first == "buffer.times") continue;  // the clock's
      EXPECT_TRUE(torch::equal(state[i].second, expected[i].second))
          << state[i].first << " of the run from update " << rest.from;
    }
  }
}

TEST(RestoredLearnerState, OfAnotherNetworkIsRefused) {
  auto config = tiny_learner("fifo");
  const auto stream = open_stream(kTinyStream);
  Learner learner(config, *stream);
  const auto state = learner.save();
  config.model.width = 8;
  const auto other_stream = open_stream(kTinyStream);
  Learner other(config, *other_stream);
  EXPECT_THROW(other.restore(state), Error);
}

}  // namespace
}  // namespace riffle

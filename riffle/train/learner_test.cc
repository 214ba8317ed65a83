#include "riffle/train/learner.h"

#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "riffle/base/error.h"
#include "riffle/base/log.h"
#include "riffle/model/state.h"
#include "riffle/stream/shapes/junk.h"
#include "riffle/stream/stream.h"
#include "riffle/train/testing/learner.h"

namespace riffle {
namespace {

LearnerConfig tiny(const std::string& policy) {
  LearnerConfig config = small_learner(policy);
  config.train.max_updates = 12;
  return config;
}

std::vector<UpdateReport> run(Learner& learner) {
  std::vector<UpdateReport> reports;
  while (auto report = learner.advance()) reports.push_back(*report);
  return reports;
}

std::vector<UpdateReport> run(const LearnerConfig& config, const std::string& uri) {
  const auto stream = open_stream(uri);
  Learner learner(config, *stream);
  return run(learner);
}

constexpr const char* kStream = "synthetic:?frames=6&size=16&seed=1";

class LearnerPolicies : public testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(All, LearnerPolicies,
                         testing::Values("fifo", "reservoir", "minred", "merge"));

TEST_P(LearnerPolicies, TrainingStartsWhenTheBufferIsFullThenMakesKUpdatesABatch) {
  const auto reports = run(tiny(GetParam()), kStream);
  ASSERT_EQ(reports.size(), 12u);
  for (std::size_t i = 0; i < reports.size(); ++i) {
    EXPECT_EQ(reports[i].update, static_cast<std::int64_t>(i) + 1);
    EXPECT_EQ(reports[i].samples_seen, 32 + 8 * static_cast<std::int64_t>(i / 3));
    EXPECT_TRUE(std::isfinite(reports[i].loss));
    EXPECT_GT(reports[i].std, 0);
  }
}

TEST_P(LearnerPolicies, TheSameSeedGivesTheSameRunAndAnotherSeedAnother) {
  auto config = tiny(GetParam());
  const auto first = run(config, kStream);
  const auto second = run(config, kStream);
  for (std::size_t i = 0; i < first.size(); ++i) EXPECT_EQ(first[i].loss, second[i].loss);
  config.seed = 6;
  EXPECT_NE(run(config, kStream).back().loss, first.back().loss);
}

TEST(Learner, SaysHowMuchOfABatchAndOfTheBufferIsJunk) {
  const auto stream = open_stream("synthetic:?frames=6&size=16", "junk:share=0.5");
  Learner learner(tiny("none"), *stream);
  const auto expected = open_stream("synthetic:?frames=6&size=16", "junk:share=0.5");
  std::set<double> shares;
  double junk = 0;
  for (const auto& report : run(learner)) {
    junk = 0;
    for (int i = 0; i < 8; ++i) junk += expected->next()->label == kJunkLabel;
    EXPECT_EQ(report.junk, junk / 8);
    shares.insert(report.junk);
  }
  EXPECT_GT(shares.size(), 1u);
  EXPECT_EQ(learner.junk_in_buffer(), junk / 8) << "without a buffer: the last batch";
  for (const auto& report : run(tiny("fifo"), kStream)) EXPECT_EQ(report.junk, 0);
}

TEST(Learner, PartnersAreOfTheSameClipAndNearAndViewsAreOfBoth) {
  for (const Storage storage : {Storage::raw, Storage::jpeg}) {
    LearnerConfig config = tiny("reservoir");
    config.buffer.storage = storage;
    const double alone = run(config, kStream).front().loss;
    config.augment.temporal = 2;
    EXPECT_NE(run(config, kStream).front().loss, alone);
    if (storage == Storage::jpeg) continue;

    const auto stream = open_stream(kStream);
    Learner learner(config, *stream);
    const auto reports = run(learner);
    struct Frame {
      std::int64_t clip, number;
    };
    // By the bytes of its picture.
    std::map<std::string, Frame> frames;
    const auto again = open_stream(kStream);
    for (std::int64_t i = 0; i < reports.back().samples_seen; ++i) {
      const Sample sample = *again->next();
      frames[{sample.picture.rgb.begin(), sample.picture.rgb.end()}] = {sample.clip, i};
    }
    const ReplayBuffer& buffer = learner.buffer();
    const Pictures pictures = buffer.pictures(buffer.live());
    const auto frame_of = [&](std::int64_t row) {
      const at::Tensor picture = pictures.tensor[row].contiguous();
      const auto* bytes = picture.const_data_ptr<std::uint8_t>();
      return frames.at({bytes, bytes + picture.numel()});
    };
    std::set<std::int64_t> distances;
    for (std::size_t i = 0; i < pictures.indices.size(); ++i) {
      const Frame own = frame_of(pictures.indices[i]);
      const Frame partner = frame_of(pictures.second[i]);
      EXPECT_EQ(own.number, static_cast<std::int64_t>(buffer.info(buffer.live()[i]).index));
      EXPECT_EQ(own.clip, partner.clip);
      EXPECT_EQ(own.number / 8, partner.number / 8) << "of one stream batch";
      distances.insert(own.number - partner.number);
    }
    EXPECT_THAT(distances, testing::IsSupersetOf({-2, -1, 1, 2}));
    EXPECT_LE(*distances.rbegin(), 2);
    EXPECT_GE(*distances.begin(), -2);
  }
}

TEST(Learner, AStreamWithoutClipsIsToldOnceThatEachSampleIsItsOwnPartner) {
  LearnerConfig config = tiny("fifo");
  const std::string stills = "synthetic:?frames=1&size=16&seed=1";
  const auto alone = run(config, stills);
  config.augment.temporal = 2;
  set_log_level(LogLevel::warnings);
  testing::internal::CaptureStderr();
  const auto reports = run(config, stills);
  const std::string said = testing::internal::GetCapturedStderr();
  EXPECT_THAT(said, testing::HasSubstr("8 of 8 samples of a stream batch have no other frame"));
  EXPECT_EQ(said.find("no other frame"), said.rfind("no other frame"));
  EXPECT_EQ(reports.back().loss, alone.back().loss) << "both views are of the one frame";
}

TEST(Learner, WithoutABufferEveryBatchIsTheNextOfTheStreamUsedOnce) {
  const auto reports = run(tiny("none"), "synthetic:?frames=8&size=16");
  ASSERT_EQ(reports.size(), 12u);
  for (const auto& report : reports) {
    EXPECT_EQ(report.samples_seen, 8 * report.update);
    EXPECT_EQ(report.same_clip_pairs, 1) << "a batch of 8 is one clip of 8 frames";
  }
}

TEST(Learner, ABufferMakesBatchesLessAlike) {
  const auto reports = run(tiny("fifo"), "synthetic:?frames=8&size=16");
  double mean = 0;
  for (const auto& report : reports)
    mean += report.same_clip_pairs / static_cast<double>(reports.size());
  EXPECT_LT(mean, 0.5);
  EXPECT_GT(mean, 0);
}

TEST(Learner, TheRunEndsWithTheStream) {
  const auto reports = run(tiny("fifo"), "synthetic:?frames=6&size=16&samples=45");
  EXPECT_EQ(reports.size(), 6u) << "32 fill the buffer, one batch of 8 follows, 5 are too few";
}

TEST(Learner, DrainContinuesOnWhatTheBufferHoldsUntilAllUpdatesAreMade) {
  LearnerConfig config = tiny("minred");
  config.train.drain = true;
  const auto reports = run(config, "synthetic:?frames=6&size=16&samples=45");
  ASSERT_EQ(reports.size(), 12u);
  EXPECT_EQ(reports.back().samples_seen, 40);
  config.train.max_updates = 0;
  config.train.schedule = ScheduleKind::constant;
  EXPECT_THROW(run(config, kStream), Error) << "it would never end";
}

TEST(Learner, DrainDoesNotRepeatBatchesWhereThereIsNoBuffer) {
  LearnerConfig config = tiny("none");
  config.train.drain = true;
  EXPECT_EQ(run(config, "synthetic:?frames=6&size=16&samples=45").size(), 5u);
}

TEST(Learner, AStreamTooShortForTheBufferIsAnErrorThatSaysSo) {
  try {
    run(tiny("fifo"), "synthetic:?size=16&samples=20");
    FAIL() << "should have thrown";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), testing::HasSubstr("before the buffer of 32 was full"));
  }
}

TEST(Learner, FeaturesOnArrivalTrackEveryNewSampleOnceWarm) {
  auto config = tiny("minred");
  config.train.max_updates = 30;
  const auto tracked_share = [&](FeatureTime features) {
    config.buffer.features = features;
    const auto stream = open_stream(kStream);
    Learner learner(config, *stream);
    run(learner);
    return learner.buffer().stats().tracked_share;
  };
  EXPECT_GT(tracked_share(FeatureTime::arrival), tracked_share(FeatureTime::draw));
}

// A camera with its cap on, or at night.
class BlackStream : public Stream {
 public:
  std::optional<Sample> next() override {
    Sample sample;
    sample.picture = Picture(16, 16);
    sample.index = index_++;
    return sample;
  }
  std::string position() const override { return {}; }
  void seek(const std::string&) override {}

 private:
  std::uint64_t index_ = 0;
};

TEST_P(LearnerPolicies, BlackPicturesDoNotEndARun) {
  BlackStream stream;
  Learner learner(tiny(GetParam()), stream);
  EXPECT_EQ(run(learner).size(), 12u);
}

TEST(Learner, ALossThatIsNoLongerFiniteStopsTheRunNamingTheUpdate) {
  auto config = tiny("fifo");
  config.train.lr = 1e30;
  config.train.max_updates = 50;
  try {
    run(config, kStream);
    FAIL() << "should have thrown";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::failure);
    EXPECT_THAT(error.what(), testing::HasSubstr("the loss of update"));
  }
}

void expect_continues_restored(const LearnerConfig& config, const std::string& uri = kStream) {
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

TEST_P(LearnerPolicies, RestoredInAnotherLearnerContinuesTheSame) {
  expect_continues_restored(tiny(GetParam()));
  LearnerConfig drained = tiny(GetParam());
  drained.train.drain = true;
  expect_continues_restored(drained, "synthetic:?frames=6&size=16&samples=45");
}

class LearnerMethods : public testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(All, LearnerMethods, testing::ValuesIn(objective_names()),
                         [](const auto& known) { return known.param; });

TEST_P(LearnerMethods, RestoredInAnotherLearnerContinuesTheSame) {
  auto config = tiny("merge");
  config.model.objective = GetParam();
  expect_continues_restored(config);
}

// Stream batches of four, three of which are in each batch of eight.
LearnerConfig with_fresh(const std::string& policy) {
  auto config = tiny(policy);
  config.train.stream_batch = 4;
  config.train.fresh = 0.375;
  config.model.align_weight = 1;
  return config;
}

TEST_P(LearnerPolicies, WithFreshSamplesRestoredInAnotherLearnerContinuesTheSame) {
  expect_continues_restored(with_fresh(GetParam()));
}

TEST(Learner, TheAverageOfTheEncoderContinuesTheSameInAnotherLearner) {
  auto config = tiny("merge");
  config.model.average = 0.9;
  config.train.max_updates = 40;
  const at::Tensor pictures = at::rand({4, 3, 16, 16});
  // It moves every sixteenth update: saved before, at and after that.
  for (const int until : {15, 16, 17}) {
    const auto stream = open_stream(kStream);
    Learner whole(config, *stream);
    while (whole.update() < until) whole.advance();
    const at::Tensor before = whole.objective().encode(pictures);
    const auto again = open_stream(kStream);
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

TEST_P(LearnerPolicies, StreamBatchesMayBeSmallerThanThoseOfUpdates) {
  const auto reports = run(with_fresh(GetParam()), kStream);
  ASSERT_EQ(reports.size(), 12u);
  for (std::size_t i = 0; i < reports.size(); ++i) {
    EXPECT_EQ(reports[i].samples_seen, 32 + 4 * static_cast<std::int64_t>(i / 3));
  }
}

TEST(Learner, FreshSamplesThatCannotBeAreRefused) {
  const auto refusal = [](const LearnerConfig& config) -> std::string {
    try {
      run(config, kStream);
    } catch (const Error& error) {
      return error.what();
    }
    return "none";
  };
  auto config = with_fresh("fifo");
  config.train.fresh = 0.75;
  EXPECT_THAT(refusal(config), testing::HasSubstr("more than the 4 of a stream batch"));
  config = with_fresh("fifo");
  config.buffer.capacity = "8";
  EXPECT_THAT(refusal(config), testing::HasSubstr("at least --capacity 9"));
  config = with_fresh("none");
  EXPECT_THAT(refusal(config), testing::HasSubstr("train.fresh needs a buffer"));
  config.train.fresh = 0;
  EXPECT_THAT(refusal(config), testing::HasSubstr("train.stream_batch needs a buffer"));
}

// Its blocks wake before updates 3, 6, 9 and 12, counted from 0.
LearnerConfig growing(const std::string& objective = "simsiam") {
  auto config = tiny("minred");
  config.model.objective = objective;
  config.model.arch = Arch::resnet18;
  config.model.grow_every = 3;
  config.train.max_updates = 14;
  return config;
}

TEST(Learner, ABlockThatIsAddedLearnsFromItsUpdateOn) {
  const auto stream = open_stream(kStream);
  Learner learner(growing(), *stream);
  const NamedTensors start = save_state(learner.objective());
  const auto changed = [&](const std::string& block) {
    const NamedTensors now = save_state(learner.objective());
    bool any = false;
    for (std::size_t i = 0; i < now.size(); ++i) {
      if (!now[i].first.starts_with("encoder." + block)) continue;
      any = any || !torch::equal(now[i].second, start[i].second);
    }
    return any;
  };
  while (const auto report = learner.advance()) {
    EXPECT_TRUE(std::isfinite(report->loss));
    EXPECT_TRUE(changed("layer4.0."));
    EXPECT_EQ(changed("layer4.1."), report->update > 3) << report->update;
    EXPECT_EQ(changed("layer3.1."), report->update > 6) << report->update;
    EXPECT_EQ(changed("layer2.1."), report->update > 9) << report->update;
    EXPECT_EQ(changed("layer1.1."), report->update > 12) << report->update;
  }
  EXPECT_EQ(learner.update(), 14);
}

TEST_P(LearnerMethods, AGrowingRunRestoredBeforeOrAfterAGrowthEndsAsTheWholeOne) {
  const auto config = growing(GetParam());
  const auto stream = open_stream(kStream);
  Learner whole(config, *stream);
  struct Rest {
    std::int64_t from;
    std::unique_ptr<Stream> stream;
    std::unique_ptr<Learner> learner;
  };
  std::vector<Rest> rests;
  for (const std::int64_t from : {2, 3, 4, 13}) {
    while (whole.update() < from) whole.advance();
    auto& rest = rests.emplace_back(Rest{from, open_stream(kStream), nullptr});
    rest.learner = std::make_unique<Learner>(config, *rest.stream);
    rest.learner->restore(whole.save());
    const std::vector<Slot> live = whole.buffer().live();
    rest.learner->buffer().put_stored(live, whole.buffer().stored(live));
  }
  run(whole);
  const NamedTensors expected = whole.save();
  for (const Rest& rest : rests) {
    run(*rest.learner);
    const NamedTensors state = rest.learner->save();
    ASSERT_EQ(state.size(), expected.size());
    for (std::size_t i = 0; i < state.size(); ++i) {
      if (state[i].first == "buffer.times") continue;  // the clock's
      EXPECT_TRUE(torch::equal(state[i].second, expected[i].second))
          << state[i].first << " of the run from update " << rest.from;
    }
  }
}

TEST(Learner, AStateOfAnotherNetworkIsRefused) {
  auto config = tiny("fifo");
  const auto stream = open_stream(kStream);
  Learner learner(config, *stream);
  const auto state = learner.save();
  config.model.width = 8;
  const auto other_stream = open_stream(kStream);
  Learner other(config, *other_stream);
  EXPECT_THROW(other.restore(state), Error);
}

TEST(Learner, FillTakesABatchAtATimeUntilTheBufferIsFull) {
  const auto stream = open_stream(kStream);
  Learner learner(tiny("fifo"), *stream);
  int batches = 0;
  while (learner.fill()) EXPECT_EQ(learner.batches_taken(), ++batches);
  EXPECT_EQ(batches, 4);
  EXPECT_EQ(learner.advance()->samples_seen, 32);
}

TEST(Learner, AStoppedLearnerMakesNoFurtherUpdate) {
  const auto stream = open_stream(kStream);
  Learner learner(tiny("fifo"), *stream);
  ASSERT_TRUE(learner.advance());
  learner.stop();
  EXPECT_FALSE(learner.advance());
  EXPECT_EQ(learner.update(), 1);
}

TEST(Learner, ARunWithoutAnEndNeedsARateWithoutOne) {
  auto config = tiny("fifo");
  config.train.max_updates = 0;
  config.train.schedule = ScheduleKind::cosine;
  try {
    run(config, kStream);
    FAIL() << "should have thrown";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), testing::HasSubstr("train.schedule=cosine"));
  }
  config.train.schedule = TrainConfig().schedule;
  const auto stream = open_stream(kStream);
  Learner learner(config, *stream);
  while (learner.advance()->update < 20) {
  }
}

TEST(Learner, AnUnknownDeviceIsRefused) {
  auto config = tiny("fifo");
  config.device = "gpu";
  EXPECT_THROW(run(config, kStream), Error);
}

}  // namespace
}  // namespace riffle

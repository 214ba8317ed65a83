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

class LearnerPolicies : public testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(All, LearnerPolicies,
                         testing::Values("fifo", "reservoir", "minred", "merge"));

TEST_P(LearnerPolicies, TrainingStartsWhenTheBufferIsFullThenMakesKUpdatesABatch) {
  const auto reports = updates_of(tiny_learner(GetParam()), kTinyStream);
  ASSERT_EQ(reports.size(), 12u);
  for (std::size_t i = 0; i < reports.size(); ++i) {
    EXPECT_EQ(reports[i].update, static_cast<std::int64_t>(i) + 1);
    EXPECT_EQ(reports[i].samples_seen, 32 + 8 * static_cast<std::int64_t>(i / 3));
    EXPECT_TRUE(std::isfinite(reports[i].loss));
    EXPECT_GT(reports[i].std, 0);
  }
}

TEST_P(LearnerPolicies, TheSameSeedGivesTheSameRunAndAnotherSeedAnother) {
  auto config = tiny_learner(GetParam());
  const auto first = updates_of(config, kTinyStream);
  const auto second = updates_of(config, kTinyStream);
  for (std::size_t i = 0; i < first.size(); ++i) EXPECT_EQ(first[i].loss, second[i].loss);
  config.seed = 6;
  EXPECT_NE(updates_of(config, kTinyStream).back().loss, first.back().loss);
}

TEST(Learner, SaysHowMuchOfABatchAndOfTheBufferIsJunk) {
  const auto stream = open_stream("synthetic:?frames=6&size=16", "junk:share=0.5");
  Learner learner(tiny_learner("none"), *stream);
  const auto expected = open_stream("synthetic:?frames=6&size=16", "junk:share=0.5");
  std::set<double> shares;
  double junk = 0;
  for (const auto& report : updates_of(learner)) {
    junk = 0;
    for (int i = 0; i < 8; ++i) junk += expected->next()->label == kJunkLabel;
    EXPECT_EQ(report.junk, junk / 8);
    shares.insert(report.junk);
  }
  EXPECT_GT(shares.size(), 1u);
  EXPECT_EQ(learner.junk_in_buffer(), junk / 8) << "without a buffer: the last batch";
  for (const auto& report : updates_of(tiny_learner("fifo"), kTinyStream))
    EXPECT_EQ(report.junk, 0);
}

TEST(Learner, PartnersAreOfTheSameClipAndNearAndViewsAreOfBoth) {
  for (const Storage storage : {Storage::raw, Storage::jpeg}) {
    LearnerConfig config = tiny_learner("reservoir");
    config.buffer.storage = storage;
    const double alone = updates_of(config, kTinyStream).front().loss;
    config.augment.temporal = 2;
    EXPECT_NE(updates_of(config, kTinyStream).front().loss, alone);
    if (storage == Storage::jpeg) continue;

    const auto stream = open_stream(kTinyStream);
    Learner learner(config, *stream);
    const auto reports = updates_of(learner);
    struct Frame {
      std::int64_t clip, number;
    };
    // By the bytes of its picture.
    std::map<std::string, Frame> frames;
    const auto again = open_stream(kTinyStream);
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
  LearnerConfig config = tiny_learner("fifo");
  const std::string stills = "synthetic:?frames=1&size=16&seed=1";
  const auto alone = updates_of(config, stills);
  config.augment.temporal = 2;
  set_log_level(LogLevel::warnings);
  testing::internal::CaptureStderr();
  const auto reports = updates_of(config, stills);
  const std::string said = testing::internal::GetCapturedStderr();
  EXPECT_THAT(said, testing::HasSubstr("8 of 8 samples of a stream batch have no other frame"));
  EXPECT_EQ(said.find("no other frame"), said.rfind("no other frame"));
  EXPECT_EQ(reports.back().loss, alone.back().loss) << "both views are of the one frame";
}

TEST(Learner, WithoutABufferEveryBatchIsTheNextOfTheStreamUsedOnce) {
  const auto reports = updates_of(tiny_learner("none"), "synthetic:?frames=8&size=16");
  ASSERT_EQ(reports.size(), 12u);
  for (const auto& report : reports) {
    EXPECT_EQ(report.samples_seen, 8 * report.update);
    EXPECT_EQ(report.same_clip_pairs, 1) << "a batch of 8 is one clip of 8 frames";
  }
}

TEST(Learner, ABufferMakesBatchesLessAlike) {
  const auto reports = updates_of(tiny_learner("fifo"), "synthetic:?frames=8&size=16");
  double mean = 0;
  for (const auto& report : reports)
    mean += report.same_clip_pairs / static_cast<double>(reports.size());
  EXPECT_LT(mean, 0.5);
  EXPECT_GT(mean, 0);
}

TEST(Learner, TheRunEndsWithTheStream) {
  const auto reports = updates_of(tiny_learner("fifo"), "synthetic:?frames=6&size=16&samples=45");
  EXPECT_EQ(reports.size(), 6u) << "32 fill the buffer, one batch of 8 follows, 5 are too few";
}

TEST(Learner, DrainContinuesOnWhatTheBufferHoldsUntilAllUpdatesAreMade) {
  LearnerConfig config = tiny_learner("minred");
  config.train.drain = true;
  const auto reports = updates_of(config, "synthetic:?frames=6&size=16&samples=45");
  ASSERT_EQ(reports.size(), 12u);
  EXPECT_EQ(reports.back().samples_seen, 40);
  config.train.max_updates = 0;
  config.train.schedule = ScheduleKind::constant;
  EXPECT_THROW(updates_of(config, kTinyStream), Error) << "it would never end";
}

TEST(Learner, DrainDoesNotRepeatBatchesWhereThereIsNoBuffer) {
  LearnerConfig config = tiny_learner("none");
  config.train.drain = true;
  EXPECT_EQ(updates_of(config, "synthetic:?frames=6&size=16&samples=45").size(), 5u);
}

TEST(Learner, AStreamTooShortForTheBufferIsAnErrorThatSaysSo) {
  const auto stream = open_stream("synthetic:?size=16&samples=20");
  const auto learn = [&] {
    Learner learner(tiny_learner("fifo"), *stream);
    updates_of(learner);
  };
  using testing::HasSubstr;
  EXPECT_THAT(learn, testing::ThrowsMessage<Error>(HasSubstr("before the buffer of 32 was full")));
  EXPECT_THAT(learn, testing::ThrowsMessage<Error>(HasSubstr("before its first sample")))
      << "the stream is at its end";
}

TEST(Learner, FeaturesOnArrivalTrackEveryNewSampleOnceWarm) {
  auto config = tiny_learner("minred");
  config.train.max_updates = 30;
  const auto tracked_share = [&](FeatureTime features) {
    config.buffer.features = features;
    const auto stream = open_stream(kTinyStream);
    Learner learner(config, *stream);
    updates_of(learner);
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
  Learner learner(tiny_learner(GetParam()), stream);
  EXPECT_EQ(updates_of(learner).size(), 12u);
}

TEST(Learner, ALossThatIsNoLongerFiniteStopsTheRunNamingTheUpdate) {
  auto config = tiny_learner("fifo");
  config.train.lr = 1e30;
  config.train.max_updates = 50;
  try {
    updates_of(config, kTinyStream);
    FAIL() << "should have thrown";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::failure);
    EXPECT_THAT(error.what(), testing::HasSubstr("the loss of update"));
  }
}

TEST_P(LearnerPolicies, StreamBatchesMayBeSmallerThanThoseOfUpdates) {
  const auto reports = updates_of(fresh_learner(GetParam()), kTinyStream);
  ASSERT_EQ(reports.size(), 12u);
  for (std::size_t i = 0; i < reports.size(); ++i) {
    EXPECT_EQ(reports[i].samples_seen, 32 + 4 * static_cast<std::int64_t>(i / 3));
  }
}

TEST(Learner, FreshSamplesThatCannotBeAreRefused) {
  const auto refusal = [](const LearnerConfig& config) -> std::string {
    try {
      updates_of(config, kTinyStream);
    } catch (const Error& error) {
      return error.what();
    }
    return "none";
  };
  auto config = fresh_learner("fifo");
  config.train.fresh = 0.75;
  EXPECT_THAT(refusal(config), testing::HasSubstr("more than the 4 of a stream batch"));
  config = fresh_learner("fifo");
  config.buffer.capacity = "8";
  EXPECT_THAT(refusal(config), testing::HasSubstr("at least --capacity 9"));
  config = fresh_learner("none");
  EXPECT_THAT(refusal(config), testing::HasSubstr("train.fresh needs a buffer"));
  config.train.fresh = 0;
  EXPECT_THAT(refusal(config), testing::HasSubstr("train.stream_batch needs a buffer"));
}

TEST(Learner, ABatchTooSmallForBatchNormIsRefusedBeforeTheBufferIsFilled) {
  auto config = fresh_learner("fifo");
  config.train.stream_batch = 8;
  config.train.fresh = 0.75;
  EXPECT_EQ(updates_of(config, kTinyStream).size(), 12u) << "alignment sees 2 samples of 8";
  config.train.fresh = 0.875;
  const auto stream = open_stream(kTinyStream);
  EXPECT_THAT([&] { Learner(config, *stream); },
              testing::ThrowsMessage<Error>(testing::AllOf(
                  testing::HasSubstr("train.batch=8"), testing::HasSubstr("align.weight"),
                  testing::HasSubstr("a smaller train.fresh"))));
  config.model.align_weight = 0;
  EXPECT_EQ(updates_of(config, kTinyStream).size(), 12u);
}

TEST(Learner, ABlockThatIsAddedLearnsFromItsUpdateOn) {
  const auto stream = open_stream(kTinyStream);
  Learner learner(growing_learner(), *stream);
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

TEST(Learner, FillTakesABatchAtATimeUntilTheBufferIsFull) {
  const auto stream = open_stream(kTinyStream);
  Learner learner(tiny_learner("fifo"), *stream);
  int batches = 0;
  while (learner.fill()) EXPECT_EQ(learner.batches_taken(), ++batches);
  EXPECT_EQ(batches, 4);
  EXPECT_EQ(learner.advance()->samples_seen, 32);
}

TEST(Learner, AStoppedLearnerMakesNoFurtherUpdate) {
  const auto stream = open_stream(kTinyStream);
  Learner learner(tiny_learner("fifo"), *stream);
  ASSERT_TRUE(learner.advance());
  learner.stop();
  EXPECT_FALSE(learner.advance());
  EXPECT_EQ(learner.update(), 1);
}

TEST(Learner, ARunWithoutAnEndNeedsARateWithoutOne) {
  auto config = tiny_learner("fifo");
  config.train.max_updates = 0;
  config.train.schedule = ScheduleKind::cosine;
  try {
    updates_of(config, kTinyStream);
    FAIL() << "should have thrown";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), testing::HasSubstr("train.schedule=cosine"));
  }
  config.train.schedule = TrainConfig().schedule;
  const auto stream = open_stream(kTinyStream);
  Learner learner(config, *stream);
  while (learner.advance()->update < 20) {
  }
}

TEST(Learner, AnUnknownDeviceIsRefused) {
  auto config = tiny_learner("fifo");
  config.device = "gpu";
  EXPECT_THROW(updates_of(config, kTinyStream), Error);
}

}  // namespace
}  // namespace riffle

#include "riffle/stream/survey.h"

#include <algorithm>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "riffle/stream/pairs.h"

namespace riffle {
namespace {

using testing::ElementsAre;
using testing::Pair;

// Clips of a given length; the red level of a picture is its index, so that order can be read off.
class CountingStream : public Stream {
 public:
  CountingStream(std::int64_t samples, std::int64_t clip_length)
      : samples_(samples), clip_length_(clip_length) {}

  std::optional<Sample> next() override {
    if (at_ == samples_) return std::nullopt;
    Sample sample;
    sample.picture = Picture(10 + static_cast<int>(at_ % 3), 20);
    std::fill(sample.picture.rgb.begin(), sample.picture.rgb.end(), static_cast<std::uint8_t>(at_));
    sample.index = static_cast<std::uint64_t>(at_);
    sample.clip = clip_length_ == 0 ? kNoClip : at_ / clip_length_;
    sample.label = at_ % 4 == 0 ? "" : at_ % 4 == 1 ? "cat" : "dog";
    ++at_;
    return sample;
  }
  std::string position() const override { return std::to_string(at_); }
  void seek(const std::string& position) override { at_ = std::stoll(position); }
  std::map<std::string, std::int64_t> skipped() const override { return {{"truncated", 2}}; }

 private:
  std::int64_t samples_, clip_length_, at_ = 0;
};

std::vector<int> levels(const Survey& survey) {
  std::vector<int> levels;
  for (const auto& shown : survey.shown) {
    levels.push_back(shown.picture.rgb[0]);
    EXPECT_EQ(static_cast<int>(shown.number), levels.back());
    EXPECT_EQ(shown.clip, levels.back() / 10);
  }
  return levels;
}

TEST(Survey, CountsWhatIsThere) {
  CountingStream stream(100, 10);
  const Survey survey = survey_stream(stream, {.samples = 1000, .batch = 20});
  EXPECT_EQ(survey.samples, 100);
  EXPECT_EQ(survey.clips, 10);
  EXPECT_THAT(survey.labels, ElementsAre(Pair("cat", 25), Pair("dog", 50)));
  EXPECT_THAT(survey.skipped, ElementsAre(Pair("truncated", 2)));
  EXPECT_EQ(survey.least_width, 10);
  EXPECT_EQ(survey.most_width, 12);
  EXPECT_EQ(survey.least_height, 20);
  EXPECT_EQ(survey.most_height, 20);
}

TEST(Survey, MeasuresPairsInFullBatchesBesideTheFormula) {
  CountingStream stream(105, 10);
  const Survey survey = survey_stream(stream, {.samples = 1000, .batch = 20});
  EXPECT_DOUBLE_EQ(survey.same_clip_pairs, 2 * 45.0 / 190);
  EXPECT_DOUBLE_EQ(survey.same_clip_neighbours, (105 - 11) / 104.0);
  EXPECT_DOUBLE_EQ(survey.expected_pairs, pair_correlation(20, survey.same_clip_neighbours));
}

TEST(Survey, FewSamplesAreOneBatch) {
  CountingStream stream(4, 2);
  const Survey survey = survey_stream(stream, {.batch = 256});
  EXPECT_DOUBLE_EQ(survey.same_clip_pairs, 2.0 / 6);
}

TEST(Survey, StillsAreNotCorrelated) {
  CountingStream stream(100, 0);
  const Survey survey = survey_stream(stream, {});
  EXPECT_EQ(survey.clips, 0);
  EXPECT_EQ(survey.same_clip_pairs, 0);
  EXPECT_EQ(survey.expected_pairs, 0);
}

TEST(Survey, StopsAtTheNumberAskedFor) {
  CountingStream stream(100, 10);
  EXPECT_EQ(survey_stream(stream, {.samples = 30}).samples, 30);
  EXPECT_EQ(stream.position(), "30");
}

TEST(Survey, EndsWhenItIsStopped) {
  CountingStream stream(100, 10);
  int asked = 0;
  EXPECT_EQ(survey_stream(stream, {}, {}, [&] { return ++asked > 7; }).samples, 7);
}

TEST(Survey, ShowsPicturesInOrderEvenlySpacedOverWhatWasRead) {
  for (const int count : {1, 5, 7, 8, 9, 15, 16, 17, 31, 32, 100, 200, 255}) {
    CountingStream stream(count, 10);
    const auto shown = levels(survey_stream(stream, {.shown = 8, .shown_size = 4}));
    ASSERT_EQ(static_cast<int>(shown.size()), std::min(count, 8));
    EXPECT_EQ(shown.front(), 0);
    for (std::size_t i = 1; i < shown.size(); ++i) {
      EXPECT_NEAR(shown[i], count * static_cast<double>(i) / static_cast<double>(shown.size()),
                  1 + count / 8.0)
          << count << " samples, picture " << i;
      EXPECT_GT(shown[i], shown[i - 1]);
    }
  }
}

TEST(Survey, OfNothingIsAllZero) {
  CountingStream stream(0, 1);
  const Survey survey = survey_stream(stream, {});
  EXPECT_EQ(survey.samples, 0);
  EXPECT_EQ(survey.same_clip_pairs, 0);
  EXPECT_TRUE(survey.shown.empty());
}

}  // namespace
}  // namespace riffle

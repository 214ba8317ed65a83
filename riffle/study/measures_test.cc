#include "riffle/study/measures.h"

#include <cmath>

#include <gtest/gtest.h>

#include "riffle/base/error.h"

namespace riffle {
namespace {

ResultPoint point(std::int64_t update, std::int64_t samples, double all, double a, double b) {
  ResultPoint made;
  made.update = update;
  made.samples_seen = samples;
  made.accuracy = {{"all", {all, 0, 0}}, {"a", {a, 0, 0}}, {"b", {b, 0, 0}}};
  made.share = {{"a", 75}, {"b", 25}};
  return made;
}

// Group b comes first: it is learned until sample 500, and dropped from 40 to 30 at the end.
RunResult two_groups() {
  RunResult result;
  result.order = {"b", "a"};
  result.points = {point(0, 0, 5, 6, 7), point(50, 490, 20, 10, 40), point(75, 750, 22, 18, 36),
                   point(100, 1000, 25, 24, 30)};
  result.values = {{"same_clip_pairs", 0.25}, {"seconds", 12}};
  return result;
}

TEST(Measures, ForgettingIsTheRelativeDropSinceTheEndOfAGroupsOwnTraining) {
  const RunResult result = two_groups();
  EXPECT_TRUE(std::isnan(forgetting(result, 0, 0)));
  EXPECT_DOUBLE_EQ(forgetting(result, 0, 1), 0);
  EXPECT_DOUBLE_EQ(forgetting(result, 0, 2), 10);
  EXPECT_DOUBLE_EQ(forgetting(result, 0, 3), 25);
  EXPECT_DOUBLE_EQ(final_value(result, "forgetting", "all"), 25);
  EXPECT_DOUBLE_EQ(final_value(result, "forgetting_first", "all"), 25);
  EXPECT_DOUBLE_EQ(point_value(result, 2, "forgetting", "all"), 10);
}

TEST(Measures, TurnsThatWereCountedDecideWhereTheyEnd) {
  RunResult result = two_groups();
  result.turns = {760, 1000};
  EXPECT_EQ(end_point(result, 0), 2u);
  EXPECT_NEAR(forgetting(result, 0, 3), 100 * 6 / 36.0, 1e-9);
  EXPECT_DOUBLE_EQ(point_value(result, 2, "unseen", "all"), 18) << "group a comes after 760";
  result.overlap = 0.1;
  EXPECT_TRUE(std::isnan(point_value(result, 2, "unseen", "all"))) << "or from 684 on";
}

TEST(Measures, ForgettingIsNegativeForAGroupThatGotBetter) {
  RunResult result = two_groups();
  result.points.back().accuracy["b"].linear_top1 = 44;
  EXPECT_NEAR(forgetting(result, 0, 3), -10, 1e-9);
}

TEST(Measures, UnseenIsTheAccuracyOnGroupsThatDidNotComeYet) {
  const RunResult result = two_groups();
  EXPECT_DOUBLE_EQ(point_value(result, 0, "unseen", "all"), 6);
  EXPECT_DOUBLE_EQ(point_value(result, 1, "unseen", "all"), 10);
  EXPECT_TRUE(std::isnan(point_value(result, 2, "unseen", "all")));
}

TEST(Measures, SeenIsTheAccuracyOnTheOtherGroupsAndHasAMeanOverTime) {
  const RunResult result = two_groups();
  EXPECT_DOUBLE_EQ(point_value(result, 0, "seen", "all"), 7);
  EXPECT_DOUBLE_EQ(point_value(result, 1, "seen", "all"), 40);
  EXPECT_DOUBLE_EQ(final_value(result, "seen", "all"), (24 + 30) / 2.0);
  EXPECT_DOUBLE_EQ(final_value(result, "seen_mean", "all"), (7 + 40 + 27 + 27) / 4.0);
  EXPECT_DOUBLE_EQ(final_value(result, "linear_top1_mean", "all"), (5 + 20 + 22 + 25) / 4.0);
  EXPECT_DOUBLE_EQ(final_value(result, "linear_top1_mean@a", "all"), (6 + 10 + 18 + 24) / 4.0);
}

TEST(Measures, AGroupIsSeenFromWhereItsFirstSamplesMixIntoTheTurnBefore) {
  RunResult result = two_groups();
  result.points[1].samples_seen = 500;
  EXPECT_DOUBLE_EQ(point_value(result, 1, "unseen", "all"), 10);
  result.points[1].samples_seen = 510;  // the evaluation nearest to its beginning, yet after it
  EXPECT_TRUE(std::isnan(point_value(result, 1, "unseen", "all")));
  result.overlap = 0.1;
  result.points[1].samples_seen = 460;
  EXPECT_TRUE(std::isnan(point_value(result, 1, "unseen", "all")));
  result.points[1].samples_seen = 440;
  EXPECT_DOUBLE_EQ(point_value(result, 1, "unseen", "all"), 10);
}

TEST(Measures, AValueIsOfTheFirstSetUnlessAnotherIsNamed) {
  const RunResult result = two_groups();
  EXPECT_DOUBLE_EQ(final_value(result, "linear_top1", "all"), 25);
  EXPECT_DOUBLE_EQ(final_value(result, "linear_top1@a", "all"), 24);
  EXPECT_DOUBLE_EQ(final_value(result, "share@a", "all"), 75);
  EXPECT_DOUBLE_EQ(final_value(result, "same_clip_pairs", "all"), 25);
  EXPECT_DOUBLE_EQ(final_value(result, "seconds", "all"), 12);
  EXPECT_TRUE(std::isnan(final_value(result, "loss", "all")));
}

TEST(Measures, MeanAndSpreadLeaveOutWhatIsNotThere) {
  const auto three = mean_and_spread({1, std::nan(""), 2, 3});
  EXPECT_DOUBLE_EQ(three.mean, 2);
  EXPECT_DOUBLE_EQ(three.spread, 1);
  const auto one = mean_and_spread({4});
  EXPECT_DOUBLE_EQ(one.mean, 4);
  EXPECT_TRUE(std::isnan(one.spread));
  EXPECT_TRUE(std::isnan(mean_and_spread({}).mean));
}

TEST(Measures, UnknownNamesAreRefused) {
  EXPECT_THROW(require_measure("liner_top1", {"all"}), Error);
  EXPECT_THROW(require_measure("linear_top1@al", {"all"}), Error);
  EXPECT_THROW(require_measure("unseen", {"all"}), Error) << "known along a run only";
  EXPECT_THROW(require_curve("seconds", {"all"}, "updates"), Error);
  EXPECT_NO_THROW(require_curve("unseen", {"all"}, "updates"));
  EXPECT_NO_THROW(require_curve("linear_top1@all", {"all"}, "ratio"));
}

}  // namespace
}  // namespace riffle

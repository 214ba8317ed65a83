#include "riffle/train/schedule.h"

#include <cmath>
#include <numbers>

#include <gtest/gtest.h>

#include "riffle/base/error.h"

namespace riffle {
namespace {

TrainConfig config(ScheduleKind kind) {
  TrainConfig config;
  config.batch = 512;
  config.lr = 0.05;
  config.max_updates = 100;
  config.schedule = kind;
  return config;
}

TEST(Schedule, TheRateGrowsWithTheBatch) {
  EXPECT_DOUBLE_EQ(Schedule(config(ScheduleKind::constant)).lr(0), 0.1);
}

TEST(Schedule, CosineFallsFromTheStartToItsEnd) {
  const Schedule schedule(config(ScheduleKind::cosine));
  EXPECT_DOUBLE_EQ(schedule.lr(0), 0.1);
  EXPECT_NEAR(schedule.lr(25), 0.1 * 0.8535533905932737, 1e-12);
  EXPECT_NEAR(schedule.lr(50), 0.05, 1e-12);
  EXPECT_NEAR(schedule.lr(100), 0.0, 1e-12);
  EXPECT_NEAR(schedule.lr(200), 0.0, 1e-12);
  TrainConfig with_end = config(ScheduleKind::cosine);
  with_end.final_lr = 0.1;
  EXPECT_NEAR(Schedule(with_end).lr(50), 0.1 * 0.55, 1e-12);
  EXPECT_NEAR(Schedule(with_end).lr(100), 0.01, 1e-12);
}

TEST(Schedule, ConstantStays) {
  const Schedule schedule(config(ScheduleKind::constant));
  for (const int update : {0, 50, 99, 1000}) EXPECT_DOUBLE_EQ(schedule.lr(update), 0.1);
}

TEST(Schedule, ConstantThenDecayFallsToZeroAfterItsShareOfTheRun) {
  TrainConfig late = config(ScheduleKind::constant_then_decay);
  late.decay_from = 0.6;
  const Schedule schedule(late);
  EXPECT_DOUBLE_EQ(schedule.lr(0), 0.1);
  EXPECT_DOUBLE_EQ(schedule.lr(59), 0.1);
  EXPECT_NEAR(schedule.lr(60), 0.1, 1e-12);
  EXPECT_NEAR(schedule.lr(80), 0.05, 1e-12);
  EXPECT_NEAR(schedule.lr(100), 0.0, 1e-12);
}

TEST(Schedule, WithoutAnEndTheDefaultStays) {
  TrainConfig endless;
  endless.max_updates = 0;
  const Schedule schedule(endless);
  for (const int update : {0, 1000, 1000000}) EXPECT_DOUBLE_EQ(schedule.lr(update), endless.lr);
}

TEST(Schedule, ARunOfOneUpdateMakesItAtTheRateOfTheStart) {
  for (const ScheduleKind kind :
       {ScheduleKind::cosine, ScheduleKind::constant, ScheduleKind::constant_then_decay}) {
    TrainConfig one = config(kind);
    one.max_updates = 1;
    one.decay_from = 0;
    EXPECT_DOUBLE_EQ(Schedule(one).lr(0), 0.1);
    EXPECT_LE(Schedule(one).lr(1), 0.1);
  }
}

// As a run that is resumed with a longer end.
TEST(Schedule, AnotherEndMovesTheDecayThatIsAhead) {
  TrainConfig longer = config(ScheduleKind::constant_then_decay);
  EXPECT_NEAR(Schedule(longer).lr(99), 0.1 * 0.5 * (1 + std::cos(std::numbers::pi * 0.95)), 1e-12);
  longer.max_updates = 200;
  EXPECT_DOUBLE_EQ(Schedule(longer).lr(100), 0.1);
  EXPECT_NEAR(Schedule(longer).lr(180), 0.05, 1e-12);
  longer.max_updates = 50;
  EXPECT_NEAR(Schedule(longer).lr(100), 0.0, 1e-12);
}

TEST(Schedule, ThePredictorFollowsUnlessHeld) {
  TrainConfig held = config(ScheduleKind::cosine);
  EXPECT_DOUBLE_EQ(Schedule(held).predictor_lr(70), Schedule(held).lr(70));
  held.fixed_predictor_lr = true;
  EXPECT_DOUBLE_EQ(Schedule(held).predictor_lr(70), 0.1);
  EXPECT_LT(Schedule(held).lr(70), 0.05);
}

TEST(Schedule, RefusesValuesThatMakeNoSchedule) {
  TrainConfig bad = config(ScheduleKind::cosine);
  bad.max_updates = 0;
  EXPECT_THROW(Schedule{bad}, Error);
  bad = config(ScheduleKind::cosine);
  bad.lr = -1;
  EXPECT_THROW(Schedule{bad}, Error);
}

}  // namespace
}  // namespace riffle

#include "riffle/study/run_result.h"

#include <cmath>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "riffle/base/error.h"
#include "riffle/base/file.h"
#include "riffle/base/testing/temp_folder.h"

namespace riffle {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::ThrowsMessage;

class RunResultTest : public TempFolder {
 protected:
  std::filesystem::path file() const { return folder_ / "result.json"; }
};

TEST_F(RunResultTest, IsReadAsItWasWritten) {
  RunResult result;
  result.config = "train: {}";
  result.turns = {5, 9};
  result.machine = "two cores";
  ResultPoint point;
  point.update = 3;
  point.samples_seen = 4;
  point.accuracy["set"] = {1, 2, std::nan("")};
  result.points = {point};
  result.values = {{"loss", -0.5}};
  write_result(file(), result);
  const RunResult read = read_result(file());
  EXPECT_EQ(read.config, result.config);
  EXPECT_EQ(read.turns, result.turns);
  ASSERT_EQ(read.points.size(), 1u);
  EXPECT_EQ(read.points[0].samples_seen, 4);
  EXPECT_EQ(read.points[0].accuracy.at("set").linear_top5, 2);
  EXPECT_TRUE(std::isnan(read.points[0].accuracy.at("set").knn_top1));
  EXPECT_EQ(read.values, result.values);
  EXPECT_EQ(read.machine, result.machine);
}

TEST_F(RunResultTest, LabelsOfAnyBytesAreReadAsTheyWereWritten) {
  const std::vector<std::string> labels = {"caf\xe9", "café",       "caf%E9",
                                           "100 %",   "%%41\xff%4", "two\nlines"};
  RunResult result;
  result.order = labels;
  result.probe = "train folder:caf\xe9";
  ResultPoint point;
  for (std::size_t i = 0; i < labels.size(); ++i) {
    point.accuracy["set/" + labels[i]].knn_top1 = static_cast<double>(i);
    point.share[labels[i]] = static_cast<double>(i);
  }
  result.points = {point};
  write_result(file(), result);
  const RunResult read = read_result(file());
  EXPECT_EQ(read.order, labels);
  EXPECT_EQ(read.probe, result.probe);
  ASSERT_EQ(read.points.size(), 1u);
  EXPECT_EQ(read.points[0].share, point.share);
  for (std::size_t i = 0; i < labels.size(); ++i) {
    EXPECT_EQ(read.points[0].accuracy.at("set/" + labels[i]).knn_top1, static_cast<double>(i));
  }
  EXPECT_THAT(read_text(file()), AllOf(HasSubstr("caf%e9"), HasSubstr("café"), HasSubstr("100 %")));
}

TEST_F(RunResultTest, WhatIsNotAWholeNumberIsRefusedWithTheFile) {
  for (const char* turn : {"1e300", "\"5\"", "18446744073709551615", "[1]", "0.5"}) {
    write_atomically(file(),
                     std::string(R"({"config":"","probe":"","recipes":{},"order":[],"points":[],)"
                                 R"("values":{},"turns":[)") +
                         turn + "]}");
    EXPECT_THAT([&] { read_result(file()); },
                ThrowsMessage<Error>(AllOf(HasSubstr("result.json is not the result of a run"),
                                           HasSubstr("is not a whole number"))))
        << turn;
  }
}

}  // namespace
}  // namespace riffle

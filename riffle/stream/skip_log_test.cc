#include "riffle/stream/skip_log.h"

#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace riffle {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Pair;

TEST(SkipLog, NamesTheFirstFewThenSumsUpAtPowersOfTen) {
  std::vector<std::string> lines;
  SkipLog log([&](const std::string& line) { lines.push_back(line); });
  for (int i = 1; i <= 2500; ++i) log.add("file" + std::to_string(i), "truncated", "too short");
  log.add("page.jpg", "not a picture", "");
  EXPECT_THAT(lines, ElementsAre("skipped file1: truncated (too short)",
                                 "skipped file2: truncated (too short)",
                                 "skipped file3: truncated (too short)", HasSubstr("skipped 10 "),
                                 HasSubstr("skipped 100 "), HasSubstr("latest: file1000"),
                                 "skipped page.jpg: not a picture"));
  EXPECT_THAT(log.counts(), ElementsAre(Pair("not a picture", 1), Pair("truncated", 2500)));
  EXPECT_EQ(log.summary(), "1 not a picture, 2500 truncated");
}

TEST(SkipLog, HasNothingToSayAboutNothing) { EXPECT_EQ(SkipLog().summary(), ""); }

}  // namespace
}  // namespace riffle

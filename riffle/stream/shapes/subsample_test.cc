#include "riffle/stream/shapes/subsample.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "riffle/stream/testing/generated_stream.h"

namespace riffle {
namespace {

using testing::ElementsAre;

TEST(Subsample, GivesTheFirstOfEveryFew) {
  const auto stream =
      open_shapes(generated({.samples = 12, .broken_every = 4}), "subsample:every=4");
  const auto samples = take(*stream);
  // Items 3, 7 and 11 are broken, which leaves nine.
  EXPECT_THAT(keys(samples), ElementsAre("item 0", "item 5", "item 10"));
  expect_numbered(samples);
  EXPECT_EQ(stream->skipped().at("broken"), 3);
}

TEST(Subsample, GivesAnyOneOfEveryFewIfAskedTo) {
  const auto below = generated({.samples = 4000});
  const auto samples = take(*open_shapes(below, "subsample:every=4,pick=random,seed=3"));
  ASSERT_EQ(samples.size(), 1000u);
  expect_numbered(samples);
  std::vector<int> places(4);
  for (std::size_t i = 0; i < samples.size(); ++i) {
    const auto item = parse_integer(samples[i].key.substr(5), "item");
    ASSERT_EQ(item / 4, static_cast<std::int64_t>(i));
    ++places[static_cast<std::size_t>(item % 4)];
  }
  EXPECT_THAT(places, testing::Each(testing::AllOf(testing::Gt(180), testing::Lt(320))));
}

}  // namespace
}  // namespace riffle

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

}  // namespace
}  // namespace riffle

#include "riffle/stream/shapes/loop.h"

#include <gtest/gtest.h>

#include "riffle/stream/testing/generated_stream.h"

namespace riffle {
namespace {

TEST(Loop, PlaysTheStreamThatManyTimes) {
  const auto source = generated({.samples = 10, .clip_length = 4, .broken_every = 5});
  const auto once = take(*source());
  const auto stream = open_shapes(source, "loop:times=3");
  const auto samples = take(*stream);
  ASSERT_EQ(samples.size(), 3 * once.size());
  expect_numbered(samples);
  for (std::size_t i = 0; i < samples.size(); ++i) {
    EXPECT_EQ(samples[i].key, once[i % once.size()].key);
    EXPECT_EQ(samples[i].clip, once[i % once.size()].clip);
  }
  EXPECT_FALSE(stream->next());
}

TEST(Loop, ContinuesForEverByDefault) {
  EXPECT_EQ(take(*open_shapes(generated({.samples = 3}), "loop"), 1000).size(), 1000u);
}

TEST(Loop, OfNothingEnds) {
  EXPECT_TRUE(take(*open_shapes(generated({.samples = 0}), "loop")).empty());
  EXPECT_TRUE(take(*open_shapes(generated({.samples = 0}), "loop:times=5")).empty());
}

TEST(Loop, AStopIsNotAnEnd) {
  const auto stream = open_shapes(generated({.samples = 5, .waits = true}), "loop");
  take(*stream, 5);
  const auto position = stream->position();
  stream->stop();
  EXPECT_FALSE(stream->next());
  EXPECT_EQ(stream->position(), position);
}

TEST(Loop, IsNotRepeatingInItsFirstPass) {
  const auto stream = open_shapes(generated({.samples = 5}), "loop");
  take(*stream, 3);
  const auto first_pass = stream->position();
  take(*stream, 3);
  EXPECT_EQ(stream->period(), 5);
  stream->seek(first_pass);
  EXPECT_EQ(stream->period(), std::nullopt);
  take(*stream, 3);
  EXPECT_EQ(stream->period(), 5);
}

}  // namespace
}  // namespace riffle

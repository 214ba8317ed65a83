#include "riffle/stream/shapes/limit.h"

#include <gtest/gtest.h>

#include "riffle/stream/testing/generated_stream.h"

namespace riffle {
namespace {

TEST(Limit, EndsAfterThatManySamples) {
  const auto whole = take(*generated({.samples = 20})());
  const auto stream = open_shapes(generated({.samples = 20}), "limit:samples=7");
  const auto samples = take(*stream);
  ASSERT_EQ(samples.size(), 7u);
  for (std::size_t i = 0; i < samples.size(); ++i) expect_same(samples[i], whole[i]);
  EXPECT_FALSE(stream->next());
  EXPECT_EQ(take(*open_shapes(generated({.samples = 5}), "limit:samples=7")).size(), 5u);
  EXPECT_EQ(take(*open_shapes(generated({.samples = 5}), "limit:samples=0")).size(), 0u);
}

}  // namespace
}  // namespace riffle

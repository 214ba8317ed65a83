#include "riffle/train/gradient_buckets.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/types.h>
#include <torch/utils.h>

namespace riffle {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

// Three parameters of four numbers, which a backward pass reaches from the last to the first.
struct Chain {
  std::vector<torch::Tensor> parameters;

  Chain() {
    for (int i = 0; i < 3; ++i) {
      parameters.push_back(torch::ones({4}, torch::requires_grad()));
    }
  }
  torch::Tensor loss() const {
    torch::Tensor value = torch::ones({4});
    for (const torch::Tensor& parameter : parameters) value = (value * parameter).sin();
    return value.sum();
  }
  void drop_gradients() {
    for (torch::Tensor& parameter : parameters) parameter.mutable_grad().reset();
  }
};

// Notes which buckets are complete.
GradientBuckets::Ready noting(std::vector<std::size_t>& complete) {
  return [&complete](std::optional<std::size_t> bucket) {
    if (bucket) complete.push_back(*bucket);
  };
}

TEST(GradientBuckets, AreCompleteWhileOthersAreStillComputed) {
  Chain chain;
  std::vector<std::size_t> complete;
  bool first_was_missing = false;
  GradientBuckets buckets(chain.parameters, /*most=*/8, [&](std::optional<std::size_t> bucket) {
    if (!bucket) return;
    complete.push_back(*bucket);
    for (const torch::Tensor& parameter : buckets.buckets()[*bucket].parameters) {
      EXPECT_TRUE(parameter.grad().defined());
    }
    if (*bucket == 0) first_was_missing = !chain.parameters[0].grad().defined();
  });
  for (int pass = 0; pass < 2; ++pass) {
    complete.clear();
    EXPECT_EQ(buckets.begin(), pass == 0);
    ASSERT_EQ(buckets.buckets().size(), 2u);
    EXPECT_EQ(buckets.buckets()[0].numbers, 8);
    chain.loss().backward();
    buckets.finish();
    EXPECT_THAT(complete, ElementsAre(0, 1));
    EXPECT_TRUE(first_was_missing);
    chain.drop_gradients();
  }
}

TEST(GradientBuckets, LeaveOutWhatDoesNotLearn) {
  Chain chain;
  std::vector<std::size_t> complete;
  GradientBuckets buckets(chain.parameters, /*most=*/4, noting(complete));
  chain.parameters[1].set_requires_grad(false);
  EXPECT_TRUE(buckets.begin());
  EXPECT_EQ(buckets.buckets().size(), 2u);
  chain.loss().backward();
  buckets.finish();
  EXPECT_THAT(complete, ElementsAre(0, 1));
  chain.drop_gradients();
  complete.clear();
  chain.parameters[1].set_requires_grad(true);
  EXPECT_TRUE(buckets.begin());
  EXPECT_EQ(buckets.buckets().size(), 3u);
  chain.loss().backward();
  buckets.finish();
  EXPECT_THAT(complete, ElementsAre(0, 1, 2));
}

TEST(GradientBuckets, CountWhatBackwardDidNotReachAsReady) {
  Chain chain;
  std::vector<std::size_t> complete;
  GradientBuckets buckets(chain.parameters, /*most=*/4, noting(complete));
  buckets.begin();
  chain.parameters[1].sum().backward();
  EXPECT_THAT(complete, ElementsAre(1));
  buckets.finish();
  EXPECT_THAT(complete, ElementsAre(1, 0, 2));
}

TEST(GradientBuckets, AreNotCalledOnceTheyAreGone) {
  Chain chain;
  std::vector<std::size_t> complete;
  {
    GradientBuckets buckets(chain.parameters, /*most=*/4, noting(complete));
    buckets.begin();
  }
  chain.loss().backward();
  EXPECT_THAT(complete, IsEmpty());
}

}  // namespace
}  // namespace riffle

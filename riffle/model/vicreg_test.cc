#include "riffle/model/vicreg.h"

#include <gtest/gtest.h>
#include <torch/types.h>

#include "riffle/base/error.h"
#include "riffle/model/testing/random_pictures.h"

namespace riffle {
namespace {

TEST(VicReg, ACollapsedBatchHasAVarianceTermOfOneButForTheEpsilon) {
  const VicRegTerms terms = vicreg_terms(torch::full({16, 8}, 3.0f));
  EXPECT_EQ(terms.invariance.item<float>(), 0.0f);
  EXPECT_NEAR(terms.variance.item<float>(), 1 - 0.01f, 1e-6f) << "1 - sqrt(1e-4)";
  EXPECT_EQ(terms.covariance.item<float>(), 0.0f);
}

TEST(VicReg, ChannelsThatAreOneAndTheSameHaveAllTheCovarianceThereCanBe) {
  // Two values a view, of variance 2 with one free: three equal channels.
  const torch::Tensor one = torch::tensor({1.0f, -1.0f, 1.0f, -1.0f});
  const VicRegTerms terms = vicreg_terms(one.unsqueeze(1).expand({4, 3}).contiguous());
  EXPECT_EQ(terms.variance.item<float>(), 0.0f) << "a deviation above 1 costs nothing";
  EXPECT_NEAR(terms.covariance.item<float>(), 2 * (6 * 4.0f) / 3, 1e-5f)
      << "of each view: six pairs of covariance 2, by three channels";
}

TEST(VicReg, ApartFromTheInvarianceEveryTermIsBlindToAnOffset) {
  const torch::Tensor rows = random_pictures(8, 0, /*size=*/2).view({8, 12});
  const VicRegTerms here = vicreg_terms(rows), there = vicreg_terms(rows + 7);
  EXPECT_NEAR(here.variance.item<float>(), there.variance.item<float>(), 1e-4f);
  EXPECT_NEAR(here.covariance.item<float>(), there.covariance.item<float>(), 1e-4f);
}

TEST(VicReg, RefusesNegativeWeights) {
  EXPECT_THROW(make_objective({.objective = "vicreg", .vicreg_invariance = -1}, 1), Error);
  EXPECT_THROW(make_objective({.objective = "vicreg", .vicreg_variance = -1}, 1), Error);
  EXPECT_THROW(make_objective({.objective = "vicreg", .vicreg_covariance = -1}, 1), Error);
}

}  // namespace
}  // namespace riffle

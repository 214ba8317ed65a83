#include "riffle/model/simclr.h"

#include <cmath>

#include <gtest/gtest.h>
#include <torch/types.h>

#include "riffle/base/error.h"

namespace riffle {
namespace {

TEST(SimClr, TheLossOfKnownVectorsIsItsFormula) {
  // Two samples at right angles, each with two equal views, of any length.
  const torch::Tensor embeddings =
      torch::tensor({{1.0f, 0.0f}, {0.0f, 5.0f}, {2.0f, 0.0f}, {0.0f, 1.0f}});
  for (const double temperature : {0.1, 0.5, 1.0}) {
    const double partner = std::exp(1 / temperature);
    EXPECT_NEAR(nt_xent(embeddings, temperature).item<double>(), -std::log(partner / (partner + 2)),
                1e-5);
  }
}

TEST(SimClr, ViewsThatAreAllAlikeLeaveAGuessAmongAllOthers) {
  const torch::Tensor same = torch::ones({16, 4});
  EXPECT_NEAR(nt_xent(same, 0.2).item<double>(), std::log(15.0), 1e-5);
}

TEST(SimClr, PullsPartnersTogetherAndPushesOthersApart) {
  torch::Tensor embeddings =
      torch::tensor({{1.0f, 0.0f}, {0.0f, 1.0f}, {0.8f, -0.6f}, {0.6f, 0.8f}}).requires_grad_();
  nt_xent(embeddings, 0.2).backward();
  const torch::Tensor moved = -embeddings.grad();
  EXPECT_GT((moved[0] * embeddings.detach()[2]).sum().item<float>(), 0) << "towards its partner";
  EXPECT_LT((moved[0] * embeddings.detach()[1]).sum().item<float>(), 0) << "away from another";
}

TEST(SimClr, RefusesATemperatureThatIsNotAboveZero) {
  for (const double temperature : {0.0, -1.0, std::nan("")}) {
    EXPECT_THROW(make_objective({.objective = "simclr", .temperature = temperature}, 1), Error);
  }
}

}  // namespace
}  // namespace riffle

#include "riffle/tensors/unit_length.h"

#include <gtest/gtest.h>
#include <torch/types.h>

namespace riffle {
namespace {

TEST(UnitLength, ScalesRowsAndLeavesZerosAlone) {
  const torch::Tensor rows = torch::tensor({{3.0f, -4.0f}, {0.0f, 0.0f}, {0.0f, 1e-6f}});
  const torch::Tensor expected = torch::tensor({{0.6f, -0.8f}, {0.0f, 0.0f}, {0.0f, 1.0f}});
  EXPECT_TRUE(torch::allclose(unit_length(rows), expected));
}

TEST(UnitLength, GradientsFlowThroughAndAreOrthogonalToTheRow) {
  const torch::Tensor row = torch::tensor({{3.0, -4.0}}, torch::kDouble).requires_grad_();
  unit_length(row).select(1, 0).sum().backward();
  EXPECT_GT(row.grad().abs().max().item<double>(), 0.1);
  EXPECT_NEAR((row.grad() * row.detach()).sum().item<double>(), 0, 1e-12);
}

}  // namespace
}  // namespace riffle

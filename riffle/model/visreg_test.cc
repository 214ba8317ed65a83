#include "riffle/model/visreg.h"

#include <gtest/gtest.h>
#include <torch/types.h>

#include "riffle/base/error.h"
#include "riffle/base/random.h"
#include "riffle/model/slices.h"

namespace riffle {
namespace {

torch::Tensor normal_rows(std::int64_t count, std::int64_t dim, std::uint64_t position) {
  torch::Tensor rows = torch::empty({count, dim});
  Random random(1, Purpose("test/normal"), position);
  for (std::int64_t i = 0; i < rows.numel(); ++i) rows.data_ptr<float>()[i] = random.normal();
  return rows;
}

constexpr std::int64_t kDim = 8;

torch::Tensor directions() { return Slices(1, 64, kDim).draw(); }

TEST(VisReg, NormalProjectionsCostLittle) {
  const torch::Tensor rows = normal_rows(1024, kDim, 0);
  const VisRegTerms terms = visreg_terms(torch::cat({rows, rows}), directions());
  EXPECT_EQ(terms.invariance.item<float>(), 0.0f);
  EXPECT_LT(terms.centre.item<float>(), 0.01f);
  EXPECT_LT(terms.scale.item<float>(), 0.01f);
  EXPECT_LT(terms.shape.item<float>(), 0.02f);
}

TEST(VisReg, CentreAndScaleDoNotTouchTheShape) {
  const torch::Tensor rows = normal_rows(64, kDim, 0);
  const VisRegTerms plain = visreg_terms(rows, directions());
  const VisRegTerms moved = visreg_terms(0.5 * rows + 3, directions());
  EXPECT_NEAR(moved.shape.item<float>(), plain.shape.item<float>(), 1e-3f);
  EXPECT_NEAR(moved.centre.item<float>(), 9.0f, 1.0f);
  EXPECT_NEAR(moved.scale.item<float>(), 0.25f, 0.1f);
}

TEST(VisReg, ProjectionsOfLowRankAreSeenByTheirShape) {
  // One channel eight times over: each has the right centre and scale.
  const torch::Tensor low = normal_rows(256, 1, 0).expand({256, kDim}).contiguous();
  const VisRegTerms terms = visreg_terms(low, directions());
  EXPECT_LT(terms.scale.item<float>(), 0.05f);
  EXPECT_GT(terms.shape.item<float>(), 0.3f);
}

TEST(VisReg, TheGradientIsAsLargeNearCollapseAsElsewhere) {
  const auto gradient_at = [](double scale) {
    torch::Tensor rows = (scale * normal_rows(64, kDim, 0)).requires_grad_();
    visreg_terms(rows, directions()).scale.backward();
    return rows.grad().norm().item<float>();
  };
  EXPECT_GT(gradient_at(1e-4), 1.5f * gradient_at(0.5));
  torch::Tensor collapsed = torch::ones({16, kDim}).requires_grad_();
  const VisRegTerms terms = visreg_terms(collapsed, directions());
  (terms.scale + terms.shape + terms.centre).backward();
  EXPECT_TRUE(collapsed.grad().isfinite().all().item<bool>());
}

TEST(VisReg, RefusesNegativeWeightsAndFewerThanOneSlice) {
  EXPECT_THROW(make_objective({.objective = "visreg", .visreg_invariance = -1}, 1), Error);
  EXPECT_THROW(make_objective({.objective = "visreg", .visreg_regulariser = -1}, 1), Error);
  EXPECT_THROW(make_objective({.objective = "visreg", .visreg_slices = 0}, 1), Error);
}

TEST(Slices, AreAFunctionOfSeedAndUpdate) {
  Slices slices(7, 16, 5), same(7, 16, 5), other(8, 16, 5);
  const Slices high((std::uint64_t{1} << 32) + 7, 16, 5);
  const torch::Tensor first = slices.draw();
  EXPECT_TRUE(torch::equal(first, slices.draw())) << "until they advance";
  EXPECT_TRUE(torch::equal(first, same.draw()));
  EXPECT_FALSE(torch::equal(first, other.draw()));
  EXPECT_FALSE(torch::equal(first, high.draw()));
  slices.advance();
  EXPECT_FALSE(torch::equal(first, slices.draw()));
  same.advance();
  EXPECT_TRUE(torch::equal(slices.draw(), same.draw()));
}

TEST(Slices, AreUniformOnTheSphereAndIndependentOverUpdates) {
  constexpr std::int64_t kCount = 20000;
  Slices slices(3, kCount, 4);
  const torch::Tensor first = slices.draw();
  EXPECT_TRUE(torch::allclose(first.norm(2, 1), torch::ones({kCount})));
  EXPECT_LT(first.mean(0).abs().max().item<float>(), 0.02f);
  const torch::Tensor moments = first.t().mm(first) / kCount;
  EXPECT_LT((moments - torch::eye(4) / 4).abs().max().item<float>(), 0.01f);
  // Of a coordinate of a point on the sphere in four dimensions: 3 / (4 * 6).
  EXPECT_NEAR(first.pow(4).mean().item<float>(), 0.125f, 0.005f);
  slices.advance();
  EXPECT_LT((first.t().mm(slices.draw()) / kCount).abs().max().item<float>(), 0.01f);
}

TEST(Slices, RefuseMoreNumbersThanTheyCanTellApart) {
  EXPECT_THROW(Slices(1, std::int64_t{1} << 22, 2048), Error);
}

}  // namespace
}  // namespace riffle

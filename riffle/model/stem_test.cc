#include "riffle/model/stem.h"

#include <gtest/gtest.h>
#include <torch/types.h>
#include <torch/utils.h>

#include "riffle/augment/view_layout.h"

namespace riffle {
namespace {

torch::Tensor folded(const torch::Tensor& pictures) {
  const std::int64_t n = pictures.size(0), cells = pictures.size(2) / 2;
  const torch::Tensor inner = pictures.reshape({n, 3, cells, 2, cells, 2})
                                  .permute({0, 3, 5, 1, 2, 4})
                                  .reshape({n, 12, cells, cells});
  return at::constant_pad_nd(
      inner, {kFoldedBefore, kFoldedAfter, kFoldedBefore, kFoldedAfter, 0, kFoldedChannels - 12});
}

// Outputs and the weight's gradient agree with those of plain pictures.
void expect_same(std::int64_t kernel, std::int64_t stride, const torch::Tensor& pictures,
                 const torch::Tensor& arranged) {
  StemConv stem(Init(1).at("conv1"), 8, kernel, stride);
  const torch::Tensor weight = stem.parameters().at(0);
  const torch::Tensor plain = stem.forward(pictures);
  const torch::Tensor weights_of_loss = torch::randn_like(plain);
  (plain * weights_of_loss).sum().backward();
  const torch::Tensor gradient = weight.grad().clone();
  weight.mutable_grad().reset();
  const torch::Tensor other = stem.forward(arranged);
  (other * weights_of_loss).sum().backward();
  EXPECT_TRUE(torch::allclose(plain, other, 1e-4, 1e-5));
  EXPECT_TRUE(torch::allclose(gradient, weight.grad(), 1e-4, 1e-3));
}

TEST(StemConv, FoldedPicturesGiveTheSameAsPlainOnes) {
  torch::manual_seed(1);
  const torch::Tensor pictures = torch::randn({3, 3, 24, 24});
  expect_same(7, 2, pictures, folded(pictures));
}

TEST(StemConv, PaddedPicturesGiveTheSameAsPlainOnes) {
  torch::manual_seed(1);
  const torch::Tensor pictures = torch::randn({3, 3, 16, 16});
  const torch::Tensor padded = at::constant_pad_nd(pictures, {0, 0, 0, 0, 0, kPaddedChannels - 3});
  expect_same(3, 1, pictures, padded);
  expect_same(3, 2, pictures, padded);
}

TEST(StemConv, RefusesChannelsThatAreNoLayout) {
  const StemConv small(Init(1), 8, 3, 1);
  EXPECT_THROW(small.forward(torch::zeros({1, 4, 8, 8})), std::logic_error);
  EXPECT_THROW(small.forward(torch::zeros({1, kFoldedChannels, 8, 8})), std::logic_error);
}

}  // namespace
}  // namespace riffle

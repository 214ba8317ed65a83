#include "riffle/model/layers.h"

#include <gtest/gtest.h>

namespace riffle {
namespace {

// LibTorch's own way through maps as large as these writes past its memory.
TEST(Conv, APointWithStrideIsTheSameForFewAndManyChannelsAndSoAreItsGradients) {
  for (const std::int64_t channels : {1, 4, 8, 15, 16}) {
    for (const std::int64_t size : {1, 7, 112}) {
      const Conv conv(Init(1), channels, 2 * channels, /*kernel=*/1, /*stride=*/2);
      const torch::Tensor weight = conv.parameters().front();
      const torch::Tensor maps = torch::randn({2, channels, size, size})
                                     .contiguous(at::MemoryFormat::ChannelsLast)
                                     .requires_grad_();
      const torch::Tensor out = conv.forward(maps);
      const torch::Tensor same_maps =
          maps.detach().to(torch::kDouble).contiguous().requires_grad_();
      const torch::Tensor same_weight = weight.detach().to(torch::kDouble).requires_grad_();
      const torch::Tensor expected = at::conv2d(same_maps, same_weight, {}, /*stride=*/2);
      EXPECT_TRUE(at::allclose(out.to(torch::kDouble), expected, 1e-4, 1e-4));
      const torch::Tensor wanted = torch::randn_like(expected);
      out.backward(wanted.to(torch::kFloat));
      expected.backward(wanted);
      EXPECT_TRUE(at::allclose(maps.grad().to(torch::kDouble), same_maps.grad(), 1e-4, 1e-4));
      EXPECT_TRUE(at::allclose(weight.grad().to(torch::kDouble), same_weight.grad(), 1e-3, 1e-3));
    }
  }
}

}  // namespace
}  // namespace riffle

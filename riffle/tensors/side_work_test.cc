#include "riffle/tensors/side_work.h"

#include <string>
#include <utility>
#include <vector>

#include <ATen/ATen.h>
#include <gtest/gtest.h>

namespace riffle {
namespace {

class SideWorkTest : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    if (GetParam() == "cuda" && !at::hasCUDA()) GTEST_SKIP() << "no GPU here";
  }
  const at::Device device_{GetParam()};
};

// Long enough chains for a GPU that a result would be used before it is there, if nobody waited.
at::Tensor chain(at::Tensor x) {
  for (int i = 0; i < 20; ++i) x = at::tanh(at::matmul(x, x));
  return x;
}

TEST_P(SideWorkTest, WorkSeesWhatWasQueuedBeforeAndItsResultsAreUsedWhenTheyAreThere) {
  at::manual_seed(1);
  const at::Tensor start = at::randn({256, 256}, at::kDouble).mul(0.05).to(device_);
  const at::Tensor weights = chain(start);
  SideWork side(device_);
  std::vector<at::Tensor> used;
  SideWork::Queued last = side.queue([&] { return chain(weights + 0.001); });
  for (int i = 2; i < 6; ++i) {
    SideWork::Queued next = side.queue([&] { return chain(weights + 0.001 * i); });
    used.push_back(last.result() * 2);
    last = std::move(next);
  }
  const at::Tensor plain = chain(start.cpu());
  for (int i = 1; i < 5; ++i) {
    const at::Tensor expected = chain(plain + 0.001 * i) * 2;
    EXPECT_TRUE(at::allclose(used[static_cast<std::size_t>(i - 1)].cpu(), expected, 1e-8, 1e-10))
        << i;
  }
}

INSTANTIATE_TEST_SUITE_P(Devices, SideWorkTest, testing::Values("cpu", "cuda"),
                         [](const auto& test) { return test.param; });

}  // namespace
}  // namespace riffle

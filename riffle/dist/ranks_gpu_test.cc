// Run alone and under mpirun as several ranks.
#include "riffle/dist/ranks_gpu.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>
#include <torch/cuda.h>

namespace riffle {
namespace {

class RanksOnGpu : public testing::Test {
 protected:
  void SetUp() override {
    if (!torch::cuda::is_available()) GTEST_SKIP() << "no GPU here";
    on_gpu_ = ranks_on_gpu(ranks_);
  }

  Ranks& ranks_ = ranks_of_process();
  std::unique_ptr<Ranks> on_gpu_;
};

TEST_F(RanksOnGpu, ExchangeThroughHostMemoryIfTheyShareOne) {
  if (ranks_.alone()) GTEST_SKIP() << "one rank shares nothing";
  EXPECT_EQ(on_gpu_, nullptr);
}

TEST_F(RanksOnGpu, KeepWhatOneRankHas) {
  if (!on_gpu_) GTEST_SKIP() << "built without NCCL, or several ranks on one GPU";
  EXPECT_TRUE(on_gpu_->on_gpu());
  EXPECT_EQ(on_gpu_->size(), ranks_.size());
  const at::Tensor values = at::arange(12, at::TensorOptions(at::kFloat).device(at::kCUDA));
  const at::Tensor rows = values.view({4, 3});
  EXPECT_TRUE(on_gpu_->sum(rows.t()).equal(rows.t()));
  EXPECT_TRUE(on_gpu_->sum(rows.cpu()).equal(rows.cpu()));
  EXPECT_TRUE(on_gpu_->gather(rows).equal(rows));
  const at::Tensor wide = values.to(at::kDouble), narrow = values.to(at::kBFloat16);
  on_gpu_->average({wide});
  on_gpu_->add_up({narrow});
  EXPECT_TRUE(wide.equal(values.to(at::kDouble)));
  EXPECT_TRUE(narrow.equal(values.to(at::kBFloat16)));
  EXPECT_FALSE(on_gpu_->any(false));
  EXPECT_TRUE(on_gpu_->any(true));
}

}  // namespace
}  // namespace riffle

#include "riffle/model/batch_norm.h"

#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <torch/types.h>
#include <torch/utils.h>

#include "riffle/base/error.h"
#include "riffle/base/random.h"
#include "riffle/base/text.h"
#include "riffle/model/testing/batch_norm_inputs.h"

namespace riffle {
namespace {

torch::Tensor random_tensor(torch::IntArrayRef shape, std::uint64_t position, float mean = 0.0f) {
  torch::Tensor tensor = torch::empty(shape);
  Random random(11, Purpose("batch_norm_test"), position);
  for (std::int64_t i = 0; i < tensor.numel(); ++i) {
    tensor.data_ptr<float>()[i] = mean + random.normal();
  }
  return tensor;
}

BatchNormInputs make_inputs(torch::IntArrayRef shape, bool affine, bool residual,
                            torch::ScalarType type) {
  const std::int64_t channels = shape[1];
  const auto leaf = [&](const torch::Tensor& value) { return value.to(type).requires_grad_(); };
  BatchNormInputs in;
  if (affine) {
    in.norm.weight = leaf(random_tensor({channels}, 1, 1.0f));
    in.norm.bias = leaf(random_tensor({channels}, 2));
  }
  in.norm.running_mean = random_tensor({channels}, 3).to(type);
  in.norm.running_var = random_tensor({channels}, 4).abs().to(type) + 0.5;
  in.x = leaf(random_tensor(shape, 5, 3.0f));
  if (residual) in.residual = leaf(random_tensor(shape, 6));
  in.weights_of_loss = random_tensor(shape, 7).to(type);
  return in;
}

void expect_close(const torch::Tensor& ours, const torch::Tensor& expected,
                  const std::string& what) {
  const torch::Tensor difference = ours.detach().to(torch::kFloat64) - expected.detach();
  EXPECT_LE(difference.norm().item<double>(), 2e-6 * expected.norm().item<double>() + 1e-9) << what;
}

TEST(BatchNorm, TrainingGivesTheValuesAndGradientsOfTorchInDoublePrecision) {
  const std::vector<std::vector<std::int64_t>> shapes = {
      {6, 16, 5, 7}, {4, 3, 2, 2}, {10, 37}, {2, 1, 40, 60}, {8, 64, 16, 16}, {64, 300}};
  for (const auto& shape : shapes) {
    for (const std::int64_t views : {1, 2}) {
      if (shape[0] == 2 && views == 2) continue;
      for (int options = 0; options < 8; ++options) {
        const bool affine = options & 1;
        const bool residual = options & 2;
        const bool relu = options & 4;
        BatchNormInputs ours = make_inputs(shape, affine, residual, torch::kFloat32);
        BatchNormInputs exact = make_inputs(shape, affine, residual, torch::kFloat64);
        const auto a = trained(ours, views, relu);
        const auto b = trained_by_torch(exact, views, relu);
        ASSERT_EQ(a.size(), b.size());
        for (std::size_t i = 0; i < a.size(); ++i) {
          expect_close(a[i], b[i],
                       cat("shape ", torch::IntArrayRef(shape), " views ", views, " affine ",
                           affine, " residual ", residual, " relu ", relu, " output ", i));
        }
      }
    }
  }
}

TEST(BatchNorm, EvaluationUsesRunningStatisticsAndLeavesThemAlone) {
  const torch::NoGradGuard no_gradient;
  for (const bool relu : {false, true}) {
    BatchNormInputs ours = make_inputs({6, 20, 4, 4}, true, true, torch::kFloat32);
    BatchNormInputs exact = make_inputs({6, 20, 4, 4}, true, true, torch::kFloat64);
    const torch::Tensor mean = ours.norm.running_mean.clone();
    const torch::Tensor y = batch_norm(ours.norm, ours.x, false, 1, relu, ours.residual);
    expect_close(y, batch_norm_composed(exact.norm, exact.x, false, 1, relu, exact.residual), "y");
    EXPECT_TRUE(torch::equal(ours.norm.running_mean, mean));
  }
}

TEST(BatchNorm, AChannelFarFromZeroKeepsItsVariance) {
  BatchNormInputs in = make_inputs({8, 4, 16, 16}, false, false, torch::kFloat32);
  const torch::Tensor far = (in.x.detach() + 1000.0).requires_grad_();
  const torch::Tensor y = batch_norm(in.norm, far, true, 1, false, {});
  const torch::Tensor exact =
      batch_norm_composed(make_inputs({8, 4, 16, 16}, false, false, torch::kFloat64).norm,
                          far.detach().to(torch::kFloat64), true, 1, false, {});
  EXPECT_LE((y.detach().to(torch::kFloat64) - exact).abs().max().item<double>(), 1e-3);
}

TEST(BatchNorm, TheNumberOfThreadsDoesNotChangeABit) {
  const int threads = torch::get_num_threads();
  std::vector<std::vector<torch::Tensor>> results;
  for (const int n : {1, 3}) {
    torch::set_num_threads(n);
    BatchNormInputs in = make_inputs({32, 24, 19, 17}, true, true, torch::kFloat32);
    results.push_back(
        values_and_gradients(in, batch_norm(in.norm, in.x, true, 2, true, in.residual)));
  }
  torch::set_num_threads(threads);
  for (std::size_t i = 0; i < results[0].size(); ++i) {
    EXPECT_TRUE(torch::equal(results[0][i], results[1][i])) << i;
  }
}

TEST(BatchNorm, OneValuePerChannelIsRefused) {
  BatchNormInputs in = make_inputs({2, 5}, true, false, torch::kFloat32);
  EXPECT_THROW(batch_norm(in.norm, in.x, true, 2, false, {}), Error);
}

}  // namespace
}  // namespace riffle

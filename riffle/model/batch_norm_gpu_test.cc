#include "riffle/model/batch_norm_gpu.h"

#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <torch/cuda.h>
#include <torch/types.h>
#include <torch/utils.h>

#include "riffle/base/text.h"
#include "riffle/dist/testing/imagined_ranks.h"
#include "riffle/model/testing/batch_norm_inputs.h"

namespace riffle {
namespace {

class BatchNormOnGpu : public testing::Test {
 protected:
  void SetUp() override {
    if (!torch::cuda::is_available()) GTEST_SKIP() << "no GPU here";
    torch::manual_seed(3);
  }
};

struct Inputs : BatchNormInputs {
  // The same numbers in another type of maps, on the GPU.
  Inputs with(torch::ScalarType maps, torch::ScalarType statistics) const {
    const auto leaf = [](const torch::Tensor& t, torch::ScalarType type) {
      return t.defined() ? t.detach().clone().to(type).requires_grad_() : t;
    };
    Inputs in;
    in.norm = norm;
    in.norm.weight = leaf(norm.weight, statistics);
    in.norm.bias = leaf(norm.bias, statistics);
    in.norm.running_mean = norm.running_mean.clone().to(statistics);
    in.norm.running_var = norm.running_var.clone().to(statistics);
    in.x = leaf(x, maps);
    in.residual = leaf(residual, maps);
    in.weights_of_loss = weights_of_loss.to(maps);
    return in;
  }

  // At 0 the ReLU's gradient is anybody's: the loss looks away there.
  void ignore_kinks(std::int64_t views) {
    const Inputs exact = with(torch::kFloat64, torch::kFloat64);
    const torch::Tensor y =
        batch_norm(exact.norm, exact.x, true, views, false, exact.residual).detach();
    weights_of_loss = weights_of_loss * (y.abs() > 1e-2).to(weights_of_loss.scalar_type());
  }
};

Inputs make_inputs(torch::IntArrayRef shape, bool affine, bool residual) {
  const auto cuda = torch::TensorOptions().device(torch::kCUDA);
  Inputs in;
  // In bfloat16 from the start, so that both types begin with the same numbers.
  const auto maps = [&] { return torch::randn(shape, cuda).to(torch::kBFloat16); };
  if (affine) {
    in.norm.weight = torch::randn({shape[1]}, cuda) + 1;
    in.norm.bias = torch::randn({shape[1]}, cuda);
  }
  in.norm.running_mean = torch::randn({shape[1]}, cuda);
  in.norm.running_var = torch::rand({shape[1]}, cuda) + 0.5;
  in.x = maps() + 3;
  if (residual) in.residual = maps();
  in.weights_of_loss = maps();
  return in;
}

TEST_F(BatchNormOnGpu, TrainingGivesTheValuesAndGradientsOfTorch) {
  const std::vector<std::vector<std::int64_t>> shapes = {
      {6, 16, 5, 7}, {4, 8, 2, 2}, {10, 40}, {8, 64, 56, 56}, {64, 2048}, {16, 512, 7, 7}};
  for (const auto type : {torch::kFloat32, torch::kBFloat16}) {
    const double tolerance = type == torch::kFloat32 ? 1e-5 : 6e-3;
    for (const auto& shape : shapes) {
      for (const std::int64_t views : {1, 2}) {
        for (int options = 0; options < 8; ++options) {
          const bool relu = options & 4;
          Inputs inputs = make_inputs(shape, options & 1, options & 2);
          inputs.ignore_kinks(views);
          Inputs ours = inputs.with(type, torch::kFloat32);
          Inputs exact = inputs.with(torch::kFloat64, torch::kFloat64);
          ASSERT_TRUE(fits_batch_norm_gpu(ours.norm, ours.x));
          const auto a = trained(ours, views, relu);
          const auto b = trained_by_torch(exact, views, relu);
          ASSERT_EQ(a.size(), b.size());
          for (std::size_t i = 0; i < a.size(); ++i) {
            const torch::Tensor difference = a[i].detach().to(torch::kFloat64) - b[i].detach();
            EXPECT_LE(difference.norm().item<double>(),
                      tolerance * b[i].norm().item<double>() + 1e-9)
                << cat("value ", i, " of ", shape[0], "x", shape[1], ", views ", views,
                       ", options ", options);
          }
        }
      }
    }
  }
}

TEST_F(BatchNormOnGpu, OverRanksTrainingGivesTheValuesAndGradientsOfPlainOperations) {
  ImaginedRanks ranks;
  for (const auto type : {torch::kFloat32, torch::kBFloat16}) {
    const double tolerance = type == torch::kFloat32 ? 1e-5 : 6e-3;
    for (const auto& shape : {std::vector<std::int64_t>{6, 16, 5, 7}, {10, 40}, {16, 64, 14, 14}}) {
      for (const std::int64_t views : {1, 2}) {
        for (int options = 0; options < 8; ++options) {
          const bool relu = options & 4;
          Inputs inputs = make_inputs(shape, options & 1, options & 2);
          inputs.norm.ranks = &ranks;
          inputs.ignore_kinks(views);
          const auto a = trained(inputs.with(type, torch::kFloat32), views, relu);
          const auto b = trained(inputs.with(torch::kFloat64, torch::kFloat64), views, relu);
          ASSERT_EQ(a.size(), b.size());
          for (std::size_t i = 0; i < a.size(); ++i) {
            const torch::Tensor difference = a[i].detach().to(torch::kFloat64) - b[i].detach();
            EXPECT_LE(difference.norm().item<double>(),
                      tolerance * b[i].norm().item<double>() + 1e-9)
                << cat("value ", i, " of ", shape[0], "x", shape[1], ", views ", views,
                       ", options ", options);
          }
        }
      }
    }
  }
}

TEST_F(BatchNormOnGpu, PoolingGivesTheValuesAndGradientsOfTorch) {
  const std::vector<std::vector<std::int64_t>> shapes = {
      {4, 64, 12, 12}, {6, 16, 7, 9}, {2, 8, 1, 2}, {8, 64, 56, 56}};
  for (const auto& shape : shapes) {
    for (const std::int64_t views : {1, 2}) {
      for (const bool affine : {false, true}) {
        Inputs inputs = make_inputs(shape, affine, false);
        inputs.weights_of_loss = torch::randn(
            {shape[0], shape[1], (shape[2] + 1) / 2, (shape[3] + 1) / 2}, torch::kCUDA);
        Inputs ours = inputs.with(torch::kBFloat16, torch::kFloat32);
        Inputs exact = inputs.with(torch::kFloat64, torch::kFloat64);
        const auto a =
            values_and_gradients(ours, batch_norm_relu_pool(ours.norm, ours.x, true, views));
        const auto b = values_and_gradients(
            exact, at::max_pool2d(batch_norm_composed(exact.norm, exact.x, true, views, true, {}),
                                  3, 2, 1));
        for (std::size_t i = 0; i < a.size(); ++i) {
          // Equal numbers in a window, frequent in bfloat16, may give their gradient to either.
          const torch::Tensor difference = a[i].detach().to(torch::kFloat64) - b[i].detach();
          EXPECT_LE(difference.norm().item<double>(), 2e-2 * b[i].norm().item<double>() + 1e-9)
              << cat("value ", i, " of ", shape[1], " channels, views ", views);
        }
      }
    }
  }
}

TEST_F(BatchNormOnGpu, EvaluationUsesTheRunningStatistics) {
  const torch::NoGradGuard no_gradient;
  const Inputs inputs = make_inputs({4, 64, 9, 9}, true, true);
  Inputs ours = inputs.with(torch::kFloat32, torch::kFloat32);
  Inputs exact = inputs.with(torch::kFloat64, torch::kFloat64);
  const auto a = batch_norm(ours.norm, ours.x, false, 2, true, ours.residual);
  const auto b = batch_norm_composed(exact.norm, exact.x, false, 2, true, exact.residual);
  EXPECT_TRUE(torch::allclose(a.to(torch::kFloat64), b, 1e-5, 1e-5));
}

}  // namespace
}  // namespace riffle

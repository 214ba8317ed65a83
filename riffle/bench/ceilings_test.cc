#include "riffle/bench/ceilings.h"

#include <utility>

#include <gtest/gtest.h>

#include "riffle/bench/step_bench.h"

namespace riffle {
namespace {

// Products of a 3 x 3 kernel that meet a pixel, on maps of `side`; of one with stride 2, going on
// to maps of `side`.
double plain(double side) { return (3 * side - 2) * (3 * side - 2); }
double strided(double side) { return (3 * side - 1) * (3 * side - 1); }

// Of a 7 x 7 kernel with stride 2, from 224 to 112 pixels: it begins with 4 and 6 of 7, ends
// with 5.
constexpr double kStem = 778.0 * 778 * 3 * 64;

double operations(double encoder, double heads) {
  return 2 * 2 * (2 * kStem + 3 * (encoder + heads));
}

TEST(StepCost, OfAResNet18IsWhatItsLayersAddUpTo) {
  ModelConfig model;
  model.arch = Arch::resnet18;
  model.stem = Stem::standard;
  const StepCost cost = step_cost(model, 224, 2);
  double encoder = 4 * 64 * 64 * plain(56);
  for (const double width : {128, 256, 512}) {
    const double side = 56 * 64 / width;
    encoder += width * width * (strided(side) / 2 + 3 * plain(side) + side * side / 2);
  }
  EXPECT_NEAR(cost.operations, operations(encoder, 512.0 * 512 * 2 + 3 * 512.0 * 2048),
              1e-9 * cost.operations);
  // 2,483,712 numbers leave the convolutions, 6,144 + 512 the heads' layers.
  EXPECT_NEAR(cost.bytes, 2 * 14 * 2 * (2'483'712.0 + 512 + 512 + 2048 + 512 + 2048),
              1e-3 * cost.bytes);
}

TEST(StepCost, OfAResNet50IsThatOfItsBottlenecks) {
  ModelConfig model;
  model.arch = Arch::resnet50;
  model.stem = Stem::standard;
  double encoder = 0, in = 64, side = 56;
  for (const auto& [width, blocks] : {std::pair{64, 3}, {128, 4}, {256, 6}, {512, 3}}) {
    const bool first = width == 64;
    const double before = side, out = 4.0 * width;
    if (!first) side /= 2;
    const double pixels = side * side;
    encoder += in * width * before * before +
               width * width * (first ? plain(side) : strided(side)) + (width + in) * out * pixels;
    encoder += (blocks - 1) * (2 * out * width * pixels + width * width * plain(side));
    in = out;
  }
  const double cost = step_cost(model, 224, 2).operations;
  EXPECT_NEAR(cost, operations(encoder, 2048.0 * 2048 * 3 + 2 * 512.0 * 2048), 1e-9 * cost);
}

TEST(StepCost, OfByolHasTheForwardPassOfItsTargetOnTop) {
  ModelConfig model;
  model.arch = Arch::resnet18;
  model.stem = Stem::standard;
  const StepCost alone = step_cost(model, 224, 2);
  model.objective = "byol";
  const StepCost both = step_cost(model, 224, 2);
  EXPECT_NEAR(both.operations / alone.operations, 1 + 1.0 / 3, 0.03);
  EXPECT_NEAR(both.bytes / alone.bytes, 1 + 5.0 / 14, 0.01);
}

TEST(StepCost, GrowsWithThePixelsAndTheWidthOfNumbers) {
  ModelConfig model;
  model.arch = Arch::resnet10;
  model.stem = Stem::small;
  model.width = 16;
  const StepCost small = step_cost(model, 32, 2);
  const StepCost large = step_cost(model, 64, 4);
  // But for the heads, whose part is small, and the padding, which weighs more on smaller maps.
  EXPECT_NEAR(large.operations / small.operations, 4, 0.5);
  EXPECT_NEAR(large.bytes / small.bytes, 8, 0.4);
}

TEST(Ceilings, AreThoseOfARealMachine) {
  const Ceilings ceilings = measure_ceilings(c10::kCPU);
  EXPECT_GT(ceilings.operations_per_s, 1e8);
  EXPECT_LT(ceilings.operations_per_s, 1e15);
  EXPECT_GT(ceilings.bytes_per_s, 1e8);
  EXPECT_LT(ceilings.bytes_per_s, 1e13);
}

TEST(Ceilings, AreNotPassedByAStep) {
  ModelConfig model;
  model.arch = Arch::resnet18;
  model.stem = Stem::small;
  model.width = 32;
  constexpr std::int64_t kBatch = 32, kSize = 32;
  StepBench bench(model, kBatch, kSize, torch::kCPU);
  const double operations = step_cost(model, kSize, 4).operations;
  // Other programs may take the CPU from the one measurement and not from the other, now and then.
  double share = 2;
  for (int attempt = 0; attempt < 5 && share > 1; ++attempt) {
    const double rate = bench.round(0.2).images_per_s;
    share = rate * operations / measure_ceilings(c10::kCPU).operations_per_s;
  }
  EXPECT_GT(share, 0.01);
  EXPECT_LE(share, 1);
}

}  // namespace
}  // namespace riffle

#include "riffle/train/ceilings.h"

#include <gtest/gtest.h>

namespace riffle {
namespace {

TEST(StepCost, OfAResNet18IsWhatItsLayersAddUpTo) {
  ModelConfig model;
  model.arch = Arch::resnet18;
  model.stem = Stem::standard;
  const StepCost cost = step_cost(model, 224, 2);
  // The encoder's convolutions are 1,813,561,344 multiplications a view, as anybody finds them; the
  // heads have 512 x 512 x 2 + 512 x 2048 + 2 x 2048 x 512.
  constexpr double kEncoder = 1'813'561'344.0, kHeads = 512.0 * 512 * 2 + 3 * 512.0 * 2048;
  EXPECT_NEAR(cost.operations, 2 * 3 * 2 * (kEncoder + kHeads), 1e-6 * cost.operations);
  // 2,483,712 numbers leave the convolutions, 6,144 + 512 the heads' layers.
  EXPECT_NEAR(cost.bytes, 2 * 14 * 2 * (2'483'712.0 + 512 + 512 + 2048 + 512 + 2048),
              1e-3 * cost.bytes);
}

TEST(StepCost, OfAResNet50IsThatOfItsBottlenecks) {
  ModelConfig model;
  model.arch = Arch::resnet50;
  model.stem = Stem::standard;
  constexpr double kEncoder = 4'087'136'256.0, kHeads = 2048.0 * 2048 * 3 + 2 * 512.0 * 2048;
  EXPECT_NEAR(step_cost(model, 224, 2).operations, 2 * 3 * 2 * (kEncoder + kHeads),
              1e-6 * kEncoder);
}

TEST(StepCost, GrowsWithThePixelsAndTheWidthOfNumbers) {
  ModelConfig model;
  model.arch = Arch::resnet10;
  model.stem = Stem::small;
  model.width = 16;
  const StepCost small = step_cost(model, 32, 2);
  const StepCost large = step_cost(model, 64, 4);
  // But for the heads, whose part is small.
  EXPECT_NEAR(large.operations / small.operations, 4, 0.4);
  EXPECT_NEAR(large.bytes / small.bytes, 8, 0.4);
}

TEST(Ceilings, AreThoseOfARealMachine) {
  const Ceilings ceilings = measure_ceilings(c10::kCPU);
  EXPECT_GT(ceilings.operations_per_s, 1e8);
  EXPECT_LT(ceilings.operations_per_s, 1e15);
  EXPECT_GT(ceilings.bytes_per_s, 1e8);
  EXPECT_LT(ceilings.bytes_per_s, 1e13);
}

}  // namespace
}  // namespace riffle

#include "riffle/train/ceilings.h"

#include <algorithm>
#include <chrono>
#include <string>
#include <string_view>

#include <torch/torch.h>

#include "riffle/model/objective.h"

namespace riffle {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kViews = 2;

// The activations of a layer are passed over at least so often when norms and what goes with them
// are single passes: forward they are written, read for the statistics, read and written
// normalised, and read by the next layer; backward gradient and activation are read for the sums
// and again for the gradient, which is written, then read twice, with the layer's input, and
// written.
constexpr double kPasses = 14;

template <typename Work>
double seconds_of(c10::Device device, const Work& work) {
  const auto wait = [device] {
    if (device.is_cuda()) torch::cuda::synchronize();
  };
  constexpr int kWarmUp = 2, kTimes = 8;
  double best = 1e9;
  for (int i = 0; i < kWarmUp + kTimes; ++i) {
    wait();
    const auto start = Clock::now();
    work();
    wait();
    best = std::min(best, std::chrono::duration<double>(Clock::now() - start).count());
  }
  return best;
}

std::int64_t halved(std::int64_t size) { return (size + 1) / 2; }

// The side of the maps that a layer of a ResNet gives, by torchvision's name of its weight.
std::int64_t side_after(const std::string& name, const ModelConfig& model, std::int64_t size) {
  std::int64_t side = model.stem == Stem::small ? size : halved(size);
  if (name == "encoder.conv1.weight") return side;
  if (model.stem == Stem::standard) side = halved(side);  // the pooling
  constexpr std::string_view kStage = "encoder.layer";
  const auto stage = name.at(kStage.size()) - '0';
  for (int i = 1; i < stage; ++i) side = halved(side);
  // A bottleneck goes on to the smaller maps with its second layer.
  const bool before =
      model.arch == Arch::resnet50 && stage > 1 && name.ends_with(".0.conv1.weight");
  return before ? 2 * side : side;
}

}  // namespace

Ceilings measure_ceilings(c10::Device device) {
  const bool cuda = device.is_cuda();
  const std::int64_t side = cuda ? 8192 : 2048;
  const std::int64_t bytes = std::int64_t{1} << (cuda ? 31 : 28);
  const auto options =
      torch::TensorOptions().device(device).dtype(cuda ? torch::kBFloat16 : torch::kFloat32);
  Ceilings ceilings;
  {
    const torch::Tensor a = torch::ones({side, side}, options);
    torch::Tensor out = torch::empty_like(a);
    const double seconds = seconds_of(device, [&] { torch::mm_out(out, a, a); });
    ceilings.operations_per_s = 2.0 * static_cast<double>(side * side * side) / seconds;
  }
  const torch::Tensor from = torch::ones({bytes}, options.dtype(torch::kByte));
  torch::Tensor to = torch::empty_like(from);
  const double seconds = seconds_of(device, [&] { to.copy_(from); });
  ceilings.bytes_per_s = 2.0 * static_cast<double>(bytes) / seconds;
  return ceilings;
}

StepCost step_cost(const ModelConfig& model, std::int64_t size, int number_bytes) {
  double products = 0, outputs = 0;  // of one view, forward
  for (const auto& item : make_simsiam(model, /*seed=*/0)->named_parameters()) {
    const torch::Tensor& weight = item.value();
    if (weight.dim() < 2) continue;
    const std::int64_t side = weight.dim() == 4 ? side_after(item.key(), model, size) : 1;
    const auto pixels = static_cast<double>(side * side);
    products += pixels * static_cast<double>(weight.numel());
    outputs += pixels * static_cast<double>(weight.size(0));
  }
  // Backward are two products for each: for the gradient of the weights, and of what came in. The
  // pictures need none, which is a small part.
  constexpr double kForwardAndBackward = 3;
  return {.operations = 2 * kViews * kForwardAndBackward * products,
          .bytes = kPasses * kViews * number_bytes * outputs};
}

}  // namespace riffle

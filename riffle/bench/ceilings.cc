#include "riffle/bench/ceilings.h"

#include <algorithm>
#include <chrono>
#include <string>
#include <string_view>

#include <torch/cuda.h>
#include <torch/types.h>
#include <torch/utils.h>

#include "riffle/augment/view_plan.h"
#include "riffle/model/objective.h"

namespace riffle {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::string_view kFirstLayer = "encoder.conv1.weight";
// A copy that is not trained: batches pass it forward alone.
constexpr std::string_view kCopy = "target.";

// How often the activations of a layer are read or written at least when a norm and what goes with
// it are single passes: forward they are written, read for the statistics, read and written
// normalised, and read by the next layer; backward gradient and activation are read for the sums
// and again for the gradient, which is written, then read twice, with the layer's input, and
// written.
constexpr double kPasses = 14;
constexpr double kForwardPasses = 5;

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

// The sides of the maps that a convolution reads and writes.
struct Sides {
  std::int64_t in, out;
};

std::int64_t stage_side(const ModelConfig& model, std::int64_t size, int stage) {
  std::int64_t side = model.stem == Stem::small ? size : halved(size);
  if (model.stem == Stem::standard) side = halved(side);  // the pooling
  for (int i = 1; i < stage; ++i) side = halved(side);
  return side;
}

// Of a layer of a ResNet, by torchvision's name of its weight.
Sides sides_of(const std::string& name, const ModelConfig& model, std::int64_t size) {
  if (name == kFirstLayer) return {size, model.stem == Stem::small ? size : halved(size)};
  constexpr std::string_view kStage = "encoder.layer";
  const int stage = name.at(kStage.size()) - '0';
  const std::int64_t side = stage_side(model, size, stage);
  const std::int64_t before = stage == 1 ? side : stage_side(model, size, stage - 1);
  // A bottleneck changes to the smaller maps with its second layer.
  const bool bottleneck = model.arch == Arch::resnet50;
  if (bottleneck && name.ends_with(".0.conv1.weight")) return {before, before};
  const bool shrinks = name.ends_with(bottleneck ? ".0.conv2.weight" : ".0.conv1.weight") ||
                       name.ends_with(".0.downsample.0.weight");
  return {shrinks ? before : side, side};
}

// How many of a kernel's products along one side meet a pixel. Those with the padding around the
// map are not counted: on maps of 2 x 2 they are more than half of all.
std::int64_t products_along(Sides sides, std::int64_t kernel) {
  const std::int64_t stride = sides.in > sides.out ? 2 : 1;
  std::int64_t products = 0;
  for (std::int64_t i = 0; i < sides.out; ++i) {
    const std::int64_t first = i * stride - kernel / 2;
    products += std::min(first + kernel, sides.in) - std::max<std::int64_t>(first, 0);
  }
  return products;
}

double best_matrix_product(std::int64_t side, const torch::TensorOptions& options) {
  const torch::Tensor a = torch::ones({side, side}, options);
  torch::Tensor out = torch::empty_like(a);
  const double seconds = seconds_of(options.device(), [&] { torch::mm_out(out, a, a); });
  return 2.0 * static_cast<double>(side * side * side) / seconds;
}

double best_convolution(std::int64_t channels, std::int64_t side,
                        const torch::TensorOptions& options) {
  constexpr std::int64_t kPictures = 64, kKernel = 3;
  const auto layout = torch::MemoryFormat::ChannelsLast;
  const auto maps =
      torch::ones({kPictures, channels, side + kKernel - 1, side + kKernel - 1}, options)
          .contiguous(layout);
  const auto weight =
      torch::ones({channels, channels, kKernel, kKernel}, options).contiguous(layout);
  const double seconds = seconds_of(options.device(), [&] { torch::conv2d(maps, weight); });
  return 2.0 * static_cast<double>(kPictures * side * side * weight.numel()) / seconds;
}

}  // namespace

Ceilings measure_ceilings(c10::Device device) {
  const bool cuda = device.is_cuda();
  const std::int64_t bytes = std::int64_t{1} << (cuda ? 31 : 28);
  const auto options =
      torch::TensorOptions().device(device).dtype(cuda ? torch::kBFloat16 : torch::kFloat32);
  Ceilings ceilings;
  if (cuda) {
    ceilings.operations_per_s = best_matrix_product(8192, options);
  } else {
    // Convolutions come from another library than matrix products, and which of the two is better,
    // at which size, depends on the CPU.
    const torch::NoGradGuard no_gradient;
    ceilings.operations_per_s =
        std::max({best_matrix_product(1024, options), best_matrix_product(2048, options),
                  best_convolution(128, 16, options), best_convolution(512, 4, options)});
  }
  const torch::Tensor from = torch::ones({bytes}, options.dtype(torch::kByte));
  torch::Tensor to = torch::empty_like(from);
  const double seconds = seconds_of(device, [&] { to.copy_(from); });
  ceilings.bytes_per_s = 2.0 * static_cast<double>(bytes) / seconds;
  return ceilings;
}

StepCost step_cost(const ModelConfig& model, std::int64_t size, int number_bytes) {
  double operations = 0, numbers = 0;  // of one view
  for (const auto& item : make_objective(model, /*seed=*/0)->named_parameters()) {
    const torch::Tensor& weight = item.value();
    if (weight.dim() < 2) continue;
    const bool copy = item.key().starts_with(kCopy);
    const std::string name = copy ? item.key().substr(kCopy.size()) : item.key();
    auto products = static_cast<double>(weight.numel());
    double pixels = 1;
    if (weight.dim() == 4) {
      const Sides sides = sides_of(name, model, size);
      const auto along = static_cast<double>(products_along(sides, weight.size(2)));
      products *= along * along / static_cast<double>(weight.size(2) * weight.size(2));
      pixels = static_cast<double>(sides.out * sides.out);
    }
    // Forward, and backward for the gradients of the weights and of what came in, which for the
    // pictures is not needed.
    operations += 2 * products * (copy ? 1 : name == kFirstLayer ? 2 : 3);
    numbers += (copy ? kForwardPasses : kPasses) * pixels * static_cast<double>(weight.size(0));
  }
  return {.operations = kViews * operations, .bytes = kViews * number_bytes * numbers};
}

}  // namespace riffle

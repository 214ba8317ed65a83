#include "riffle/model/resnet.h"

#include <algorithm>
#include <array>
#include <numeric>
#include <ranges>
#include <string>

#include <torch/nn/module.h>
#include <torch/types.h>

#include "riffle/base/text.h"

namespace riffle {
namespace {

// The way around a block whose output has another shape than its input: "downsample" in
// torchvision's names.
class Shortcut : public torch::nn::Module {
 public:
  Shortcut(const Init& init, std::int64_t in, std::int64_t out, std::int64_t stride)
      : conv_(register_module("0", std::make_shared<Conv>(init.at("0"), in, out, 1, stride))),
        bn_(register_module("1", std::make_shared<BatchNorm>(out))) {}

  torch::Tensor forward(const torch::Tensor& maps, Pass pass) const {
    return bn_->forward(conv_->forward(maps), pass, /*relu=*/false);
  }

 private:
  std::shared_ptr<Conv> conv_;
  std::shared_ptr<BatchNorm> bn_;
};

std::shared_ptr<Shortcut> shortcut_if_needed(const Init& init, std::int64_t in, std::int64_t out,
                                             std::int64_t stride) {
  if (stride == 1 && in == out) return nullptr;
  return std::make_shared<Shortcut>(init.at("downsample"), in, out, stride);
}

class BasicBlock : public ResidualBlock {
 public:
  static constexpr std::int64_t kExpansion = 1;

  BasicBlock(const Init& init, double gamma, std::int64_t in, std::int64_t width,
             std::int64_t stride)
      : conv1_(register_module("conv1",
                               std::make_shared<Conv>(init.at("conv1"), in, width, 3, stride))),
        bn1_(register_module("bn1", std::make_shared<BatchNorm>(width))),
        conv2_(
            register_module("conv2", std::make_shared<Conv>(init.at("conv2"), width, width, 3, 1))),
        bn2_(register_module(
            "bn2", std::make_shared<BatchNorm>(width, BatchNorm::Options{.gamma = gamma}))),
        shortcut_(shortcut_if_needed(init, in, width, stride)) {
    if (shortcut_) register_module("downsample", shortcut_);
  }

  Fork forward(const Fork& maps, Pass pass) const override {
    const torch::Tensor hidden = bn1_->forward(conv1_->forward(maps.first), pass, /*relu=*/true);
    const torch::Tensor around = shortcut_ ? shortcut_->forward(maps.second, pass) : maps.second;
    return bn2_->forward_forked(conv2_->forward(hidden), pass, around);
  }

 private:
  std::shared_ptr<Conv> conv1_;
  std::shared_ptr<BatchNorm> bn1_;
  std::shared_ptr<Conv> conv2_;
  std::shared_ptr<BatchNorm> bn2_;
  std::shared_ptr<Shortcut> shortcut_;
};

class Bottleneck : public ResidualBlock {
 public:
  static constexpr std::int64_t kExpansion = 4;

  Bottleneck(const Init& init, double gamma, std::int64_t in, std::int64_t width,
             std::int64_t stride)
      : conv1_(register_module("conv1", std::make_shared<Conv>(init.at("conv1"), in, width, 1, 1))),
        bn1_(register_module("bn1", std::make_shared<BatchNorm>(width))),
        conv2_(register_module("conv2",
                               std::make_shared<Conv>(init.at("conv2"), width, width, 3, stride))),
        bn2_(register_module("bn2", std::make_shared<BatchNorm>(width))),
        conv3_(register_module(
            "conv3", std::make_shared<Conv>(init.at("conv3"), width, width * kExpansion, 1, 1))),
        bn3_(register_module("bn3", std::make_shared<BatchNorm>(
                                        width * kExpansion, BatchNorm::Options{.gamma = gamma}))),
        shortcut_(shortcut_if_needed(init, in, width * kExpansion, stride)) {
    if (shortcut_) register_module("downsample", shortcut_);
  }

  Fork forward(const Fork& maps, Pass pass) const override {
    torch::Tensor hidden = bn1_->forward(conv1_->forward(maps.first), pass, /*relu=*/true);
    hidden = bn2_->forward(conv2_->forward(hidden), pass, /*relu=*/true);
    const torch::Tensor around = shortcut_ ? shortcut_->forward(maps.second, pass) : maps.second;
    return bn3_->forward_forked(conv3_->forward(hidden), pass, around);
  }

 private:
  std::shared_ptr<Conv> conv1_;
  std::shared_ptr<BatchNorm> bn1_;
  std::shared_ptr<Conv> conv2_;
  std::shared_ptr<BatchNorm> bn2_;
  std::shared_ptr<Conv> conv3_;
  std::shared_ptr<BatchNorm> bn3_;
  std::shared_ptr<Shortcut> shortcut_;
};

// Only there for the prefix that the names of a stage's blocks share.
class Stage : public torch::nn::Module {};

struct Layout {
  std::array<int, 4> blocks;
  bool bottleneck;
};

Layout layout_of(Arch arch) {
  switch (arch) {
    case Arch::resnet10:
      return {{1, 1, 1, 1}, false};
    case Arch::resnet18:
      return {{2, 2, 2, 2}, false};
    case Arch::resnet50:
      return {{3, 4, 6, 3}, true};
    case Arch::vit_s:
    case Arch::vit_b:
      break;
  }
  throw std::logic_error("an architecture without a layout");
}

// The blocks beyond the first of each stage, by their place among all: second ones from the last
// stage to the first, then third ones, and so on.
std::vector<std::size_t> growth_order(const Layout& layout) {
  std::vector<std::size_t> order;
  const int deepest = *std::ranges::max_element(layout.blocks);
  for (int j = 1; j < deepest; ++j) {
    int end = std::accumulate(layout.blocks.begin(), layout.blocks.end(), 0);
    for (const int blocks : layout.blocks | std::views::reverse) {
      end -= blocks;
      if (j < blocks) order.push_back(static_cast<std::size_t>(end + j));
    }
  }
  return order;
}

std::shared_ptr<ResidualBlock> make_block(const Layout& layout, const Init& init, double gamma,
                                          std::int64_t in, std::int64_t width,
                                          std::int64_t stride) {
  if (layout.bottleneck) return std::make_shared<Bottleneck>(init, gamma, in, width, stride);
  return std::make_shared<BasicBlock>(init, gamma, in, width, stride);
}

}  // namespace

ResNet::ResNet(const ModelConfig& config, const Init& init)
    : max_pool_(config.stem == Stem::standard) {
  const Layout layout = layout_of(config.arch);
  const std::int64_t kernel = config.stem == Stem::standard ? 7 : 3;
  const std::int64_t stem_stride = config.stem == Stem::small ? 1 : 2;
  conv1_ = register_module(
      "conv1", std::make_shared<StemConv>(init.at("conv1"), config.width, kernel, stem_stride));
  bn1_ = register_module("bn1", std::make_shared<BatchNorm>(config.width));

  std::int64_t in = config.width;
  for (std::size_t i = 0; i < layout.blocks.size(); ++i) {
    const std::string stage_name = cat("layer", i + 1);
    const auto stage = register_module(stage_name, std::make_shared<Stage>());
    const std::int64_t width = config.width << i;
    for (int j = 0; j < layout.blocks[i]; ++j) {
      const std::int64_t stride = i > 0 && j == 0 ? 2 : 1;
      const std::string name = cat(j);
      blocks_.push_back(
          {stage->register_module(name, make_block(layout, init.at(stage_name).at(name),
                                                   config.residual_gamma, in, width, stride))});
      in = width * (layout.bottleneck ? Bottleneck::kExpansion : BasicBlock::kExpansion);
    }
  }
  features_ = in;
  growth_ = growth_order(layout);
  grown_ = blocks_to_grow();
}

void ResNet::set_grown(int count) {
  grown_ = count;
  for (std::size_t i = 0; i < growth_.size(); ++i) {
    Block& block = blocks_[growth_[i]];
    block.awake = static_cast<int>(i) < count;
    for (torch::Tensor& parameter : block.layers->parameters()) {
      parameter.requires_grad_(block.awake);
    }
  }
}

torch::Tensor ResNet::forward(const torch::Tensor& pictures, Pass pass) const {
  torch::Tensor maps = pictures.contiguous(torch::MemoryFormat::ChannelsLast);
  maps = conv1_->forward(maps);
  maps = max_pool_ ? bn1_->forward_and_pool(maps, pass) : bn1_->forward(maps, pass, /*relu=*/true);
  Fork fork{maps, maps};
  for (const Block& block : blocks_) {
    if (block.awake || !pass.training) fork = block.layers->forward(fork, pass);
  }
  return fork.first.mean({2, 3});
}

}  // namespace riffle

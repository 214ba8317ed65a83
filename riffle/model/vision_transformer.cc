#include "riffle/model/vision_transformer.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include <torch/autograd.h>

#include "riffle/base/error.h"
#include "riffle/base/text.h"

namespace riffle {
namespace {

// As all of these networks have it.
constexpr std::int64_t kHeadWidth = 64;
constexpr double kNormEpsilon = 1e-6;
constexpr std::int64_t kMostBlocks = 64;
constexpr const char* kPatches = "patch_embed.proj.weight";

}  // namespace

bool VisionTransformer::is_one(const NamedTensors& weights) {
  return tensor_or_null(weights, kPatches) != nullptr;
}

// Registers the tensor, so that it moves with the module.
const torch::Tensor& VisionTransformer::take(const NamedTensors& weights, const std::string& name,
                                             at::IntArrayRef shape) {
  const torch::Tensor* found = tensor_or_null(weights, name);
  if (found == nullptr) throw Error(cat("a Vision Transformer without '", name, "'"));
  if (found->sizes() != shape) {
    throw Error(cat("'", name, "' is ", found->sizes(), " and should be ", shape));
  }
  std::string unique = name;
  std::ranges::replace(unique, '.', '/');  // modules do not take dots
  return register_parameter(unique, found->to(torch::kFloat32).contiguous(),
                            /*requires_grad=*/false);
}

VisionTransformer::Linear VisionTransformer::take_linear(const NamedTensors& weights,
                                                         const std::string& name,
                                                         at::IntArrayRef shape) {
  return {take(weights, name + ".weight", shape), take(weights, name + ".bias", {shape[0]})};
}

VisionTransformer::Block VisionTransformer::take_block(const NamedTensors& weights,
                                                       const std::string& name) {
  const torch::Tensor* first = tensor_or_null(weights, name + "mlp.fc1.weight");
  if (first == nullptr || first->dim() != 2) throw Error(cat("no '", name, "mlp.fc1.weight'"));
  const std::int64_t hidden = first->size(0);
  Block block;
  block.norm1 = take_linear(weights, name + "norm1", {width_});
  block.qkv = take_linear(weights, name + "attn.qkv", {3 * width_, width_});
  block.projection = take_linear(weights, name + "attn.proj", {width_, width_});
  block.norm2 = take_linear(weights, name + "norm2", {width_});
  block.hidden = take_linear(weights, name + "mlp.fc1", {hidden, width_});
  block.out = take_linear(weights, name + "mlp.fc2", {width_, hidden});
  if (tensor_or_null(weights, name + "ls1.gamma") != nullptr) {
    block.scale1 = take(weights, name + "ls1.gamma", {width_});
    block.scale2 = take(weights, name + "ls2.gamma", {width_});
  }
  return block;
}

VisionTransformer::VisionTransformer(const NamedTensors& weights) {
  const torch::Tensor* patches = tensor_or_null(weights, kPatches);
  if (patches == nullptr || patches->dim() != 4 || patches->size(1) != 3 ||
      patches->size(2) != patches->size(3)) {
    throw Error(cat("no '", kPatches, "' of a Vision Transformer for RGB pictures"));
  }
  width_ = patches->size(0);
  patch_ = patches->size(2);
  if (width_ % kHeadWidth != 0) {
    throw Error(cat("a width of ", width_, ", which is not a multiple of ", kHeadWidth));
  }
  embedding_ = take_linear(weights, "patch_embed.proj", {width_, 3, patch_, patch_});
  class_token_ = take(weights, "cls_token", {1, 1, width_});
  const torch::Tensor* position = tensor_or_null(weights, "pos_embed");
  if (position == nullptr || position->dim() != 3) throw Error("no 'pos_embed'");
  const std::int64_t cells = position->size(1) - 1;
  const auto side = std::llround(std::sqrt(static_cast<double>(cells)));
  if (cells < 1 || side * side != cells) {
    throw Error(cat("'pos_embed' is ", position->sizes(), ", not a square of patches and a class"));
  }
  positions_ = take(weights, "pos_embed", {1, cells + 1, width_});
  if (const torch::Tensor* registers = tensor_or_null(weights, "register_tokens")) {
    if (registers->dim() != 3)
      throw Error("'register_tokens' has another shape than [1, n, width]");
    registers_ = take(weights, "register_tokens", {1, registers->size(1), width_});
  }
  for (std::int64_t i = 0; i < kMostBlocks; ++i) {
    const std::string name = cat("blocks.", i, ".");
    if (tensor_or_null(weights, name + "norm1.weight") == nullptr) break;
    blocks_.push_back(take_block(weights, name));
  }
  if (blocks_.empty()) throw Error("no 'blocks.0.norm1.weight'");
  norm_ = take_linear(weights, "norm", {width_});
  eval();
}

std::string VisionTransformer::architecture() const {
  return cat("ViT of width ", width_, ", ", blocks_.size(), " blocks, patches of ", patch_);
}

torch::Tensor VisionTransformer::positions(std::int64_t rows, std::int64_t columns) const {
  const std::int64_t cells = positions_.size(1) - 1;
  const auto side = std::llround(std::sqrt(static_cast<double>(cells)));
  if (rows == side && columns == side) return positions_;
  const torch::Tensor grid =
      positions_.narrow(1, 1, cells).reshape({1, side, side, width_}).permute({0, 3, 1, 2});
  const torch::Tensor resized =
      at::upsample_bicubic2d(grid, {rows, columns}, /*align_corners=*/false);
  return torch::cat({positions_.narrow(1, 0, 1), resized.flatten(2).transpose(1, 2)}, 1);
}

torch::Tensor VisionTransformer::normalised(const torch::Tensor& tokens, const Linear& norm) const {
  return torch::layer_norm(tokens, {width_}, norm.weight, norm.bias, kNormEpsilon);
}

torch::Tensor VisionTransformer::attended(const torch::Tensor& tokens, const Block& block) const {
  const std::int64_t n = tokens.size(0), count = tokens.size(1);
  const auto parts = at::linear(tokens, block.qkv.weight, block.qkv.bias)
                         .reshape({n, count, 3, width_ / kHeadWidth, kHeadWidth})
                         .permute({2, 0, 3, 1, 4})
                         .unbind(0);
  const torch::Tensor mixed = at::scaled_dot_product_attention(parts[0], parts[1], parts[2]);
  return at::linear(mixed.transpose(1, 2).reshape({n, count, width_}), block.projection.weight,
                    block.projection.bias);
}

torch::Tensor VisionTransformer::encode(const torch::Tensor& pictures) {
  const torch::NoGradGuard no_gradient;
  const std::int64_t n = pictures.size(0), height = pictures.size(2), width = pictures.size(3);
  if (height % patch_ != 0 || width % patch_ != 0) {
    throw Error(cat("pictures of ", width, " x ", height, " px for patches of ", patch_,
                    " px; choose a size that is a multiple of it"));
  }
  torch::Tensor tokens = torch::conv2d(pictures.to(torch::kFloat32), embedding_.weight,
                                       embedding_.bias, /*stride=*/patch_)
                             .flatten(2)
                             .transpose(1, 2);
  tokens = torch::cat({class_token_.expand({n, 1, width_}), tokens}, 1) +
           positions(height / patch_, width / patch_);
  if (registers_.defined()) {
    tokens = torch::cat({tokens.narrow(1, 0, 1), registers_.expand({n, -1, -1}),
                         tokens.narrow(1, 1, tokens.size(1) - 1)},
                        1);
  }
  for (const Block& block : blocks_) {
    torch::Tensor change = attended(normalised(tokens, block.norm1), block);
    tokens = tokens + (block.scale1.defined() ? change * block.scale1 : change);
    const torch::Tensor inner = torch::gelu(
        at::linear(normalised(tokens, block.norm2), block.hidden.weight, block.hidden.bias));
    change = at::linear(inner, block.out.weight, block.out.bias);
    tokens = tokens + (block.scale2.defined() ? change * block.scale2 : change);
  }
  return normalised(tokens.select(1, 0), norm_);
}

std::shared_ptr<VisionTransformer> make_vision_transformer(const NamedTensors& weights,
                                                           const std::filesystem::path& file) {
  try {
    return std::make_shared<VisionTransformer>(weights);
  } catch (const Error& error) {
    throw Error(cat(file.string(), ": ", error.what()));
  }
}

}  // namespace riffle

#include "riffle/model/vision_transformer.h"

#include <algorithm>
#include <cmath>

#include <torch/autograd.h>

#include "riffle/base/error.h"
#include "riffle/base/text.h"
#include "riffle/model/weight_cast.h"

namespace riffle {
namespace {

constexpr double kNormEpsilon = 1e-6;
constexpr std::int64_t kDeepest = 64;
constexpr const char* kPatches = "patch_embed.proj.weight";

const torch::Tensor& need_weight(const NamedTensors& weights, const std::string& name,
                                 std::int64_t dimensions) {
  const torch::Tensor* found = tensor_or_null(weights, name);
  if (found == nullptr || found->dim() != dimensions) {
    throw Error(cat("no '", name, "' of a Vision Transformer for RGB pictures"));
  }
  return *found;
}

// Sets what position embeddings there are: a square of patches, and some before them.
void read_positions(const torch::Tensor& positions, TransformerShape& shape) {
  const std::int64_t count = positions.size(1);
  for (const std::int64_t placed : {std::int64_t{1}, std::int64_t{0}, 1 + shape.registers}) {
    const auto side = std::llround(std::sqrt(static_cast<double>(count - placed)));
    if (count <= placed || side * side != count - placed) continue;
    shape.grid = side;
    shape.placed = placed;
    return;
  }
  throw Error(cat("'pos_embed' is ", positions.sizes(), ", not a square of patches and a class"));
}

TransformerShape shape_in(const NamedTensors& weights) {
  const torch::Tensor patches = need_weight(weights, kPatches, 4);
  if (patches.size(1) != 3 || patches.size(2) != patches.size(3)) {
    throw Error(cat("'", kPatches, "' is ", patches.sizes(), ", not of square RGB patches"));
  }
  TransformerShape shape;
  shape.width = patches.size(0);
  shape.patch = patches.size(2);
  if (shape.width < 1 || shape.width % shape.head_width != 0) {
    throw Error(cat("a width of ", shape.width, ", which is not a multiple of ", shape.head_width));
  }
  for (const char* name : {"register_tokens", "reg_token"}) {
    if (tensor_or_null(weights, name) == nullptr) continue;
    shape.registers = need_weight(weights, name, 3).size(1);
    shape.register_name = name;
  }
  // Only DINOv2's own files have the token that stands for hidden patches.
  shape.antialias = shape.registers > 0 || tensor_or_null(weights, "mask_token") == nullptr;
  read_positions(need_weight(weights, "pos_embed", 3), shape);
  shape.blocks = 0;
  while (shape.blocks < kDeepest &&
         tensor_or_null(weights, cat("blocks.", shape.blocks, ".norm1.weight")) != nullptr) {
    ++shape.blocks;
  }
  if (shape.blocks == 0) throw Error("no 'blocks.0.norm1.weight'");
  shape.hidden = need_weight(weights, "blocks.0.mlp.fc1.weight", 2).size(0);
  shape.layer_scale = tensor_or_null(weights, "blocks.0.ls1.gamma") != nullptr;
  return shape;
}

// A Vision Transformer from elsewhere.
class TransformerEncoder : public Encoder {
 public:
  explicit TransformerEncoder(const NamedTensors& weights)
      : network_(register_module("network", std::make_shared<VisionTransformer>(weights))) {
    eval();
  }

  torch::Tensor encode(const torch::Tensor& pictures) override {
    const torch::NoGradGuard no_gradient;
    return network_->forward(pictures.to(torch::kFloat32), {.training = false});
  }
  std::int64_t encoder_dim() const override { return network_->features(); }

 private:
  std::shared_ptr<VisionTransformer> network_;
};

}  // namespace

TransformerShape transformer_shape(const ModelConfig& config) {
  TransformerShape shape;
  shape.head_width = config.width;
  shape.width = config.width * (config.arch == Arch::vit_b ? 12 : 6);
  shape.hidden = 4 * shape.width;
  shape.patch = config.stem == Stem::standard ? 16 : config.stem == Stem::stride2 ? 8 : 4;
  return shape;
}

bool VisionTransformer::is_one(const NamedTensors& weights) {
  return tensor_or_null(weights, kPatches) != nullptr;
}

VisionTransformer::VisionTransformer(const ModelConfig& config, const Init& init)
    : shape_(transformer_shape(config)) {
  // As timm's: normal, but for the patches, which begin as torch's convolutions do.
  constexpr float kDeviation = 0.02f;
  build([&](const std::string& name, at::IntArrayRef shape) {
    if (name == kPatches) return init.linear_uniform(name, shape, 3 * shape[2] * shape[3]);
    if (name.ends_with("bias")) return torch::zeros(shape);
    if (name.find("norm") != std::string::npos) return torch::ones(shape);
    return init.normal(name, shape, kDeviation);
  });
}

VisionTransformer::VisionTransformer(const NamedTensors& weights) : shape_(shape_in(weights)) {
  build([&](const std::string& name, at::IntArrayRef shape) {
    const torch::Tensor* found = tensor_or_null(weights, name);
    if (found == nullptr) throw Error(cat("a Vision Transformer without '", name, "'"));
    if (found->sizes() != shape) {
      throw Error(cat("'", name, "' is ", found->sizes(), " and should be ", shape));
    }
    return found->to(torch::kFloat32).contiguous();
  });
  for (torch::Tensor& parameter : parameters()) parameter.requires_grad_(false);
}

// Makes the modules on the way: "blocks.0.attn.qkv.weight" is the parameter `weight` of four.
torch::Tensor VisionTransformer::add(const std::string& name, const torch::Tensor& value) {
  torch::nn::Module* owner = this;
  std::size_t begin = 0;
  for (std::size_t dot; (dot = name.find('.', begin)) != std::string::npos; begin = dot + 1) {
    auto& part = parts_[name.substr(0, dot)];
    if (!part) {
      part = owner->register_module(name.substr(begin, dot - begin),
                                    std::make_shared<torch::nn::Module>());
    }
    owner = part.get();
  }
  return owner->register_parameter(name.substr(begin), value);
}

void VisionTransformer::build(const Values& values) {
  const std::int64_t width = shape_.width;
  const auto one = [&](const std::string& name, at::IntArrayRef shape) {
    return add(name, values(name, shape));
  };
  const auto linear = [&](const std::string& name, at::IntArrayRef shape) {
    return Linear{one(name + ".weight", shape), one(name + ".bias", {shape[0]})};
  };
  class_token_ = one("cls_token", {1, 1, width});
  positions_ = one("pos_embed", {1, shape_.placed + shape_.grid * shape_.grid, width});
  if (shape_.registers > 0) registers_ = one(shape_.register_name, {1, shape_.registers, width});
  embedding_ = linear("patch_embed.proj", {width, 3, shape_.patch, shape_.patch});
  for (std::int64_t i = 0; i < shape_.blocks; ++i) {
    const std::string name = cat("blocks.", i, ".");
    Block block;
    block.norm1 = linear(name + "norm1", {width});
    block.qkv = linear(name + "attn.qkv", {3 * width, width});
    block.projection = linear(name + "attn.proj", {width, width});
    if (shape_.layer_scale) block.scale1 = one(name + "ls1.gamma", {width});
    block.norm2 = linear(name + "norm2", {width});
    block.hidden = linear(name + "mlp.fc1", {shape_.hidden, width});
    block.out = linear(name + "mlp.fc2", {width, shape_.hidden});
    if (shape_.layer_scale) block.scale2 = one(name + "ls2.gamma", {width});
    blocks_.push_back(std::move(block));
  }
  norm_ = linear("norm", {width});
}

torch::Tensor VisionTransformer::positions(std::int64_t rows, std::int64_t columns) const {
  const std::int64_t side = shape_.grid, placed = shape_.placed;
  if (rows == side && columns == side) return positions_;
  // Resizing is linear. As a product its gradient is the same at every run on a GPU, too, where
  // that of the operation itself is not.
  const torch::Tensor cells = torch::eye(side * side, positions_.options().requires_grad(false))
                                  .reshape({side * side, 1, side, side});
  const auto scale = [side](std::int64_t patches) {
    return (static_cast<double>(patches) + 0.1) / static_cast<double>(side);
  };
  const torch::Tensor resized =
      shape_.antialias ? at::_upsample_bicubic2d_aa(cells, {rows, columns}, /*align_corners=*/false)
                       : at::upsample_bicubic2d(cells, {rows, columns}, /*align_corners=*/false,
                                                scale(rows), scale(columns));
  const torch::Tensor shares = resized.flatten(1).t();
  const torch::Tensor grid = positions_[0].narrow(0, placed, side * side);
  return torch::cat({positions_.narrow(1, 0, placed), shares.matmul(grid).unsqueeze(0)}, 1);
}

// The class, registers if there are any, and the patches, each with its position if it has one.
torch::Tensor VisionTransformer::tokens_of(const torch::Tensor& pictures) const {
  const std::int64_t n = pictures.size(0), patch = shape_.patch;
  const std::int64_t height = pictures.size(2), width = pictures.size(3);
  if (height % patch != 0 || width % patch != 0) {
    throw Error(cat("pictures of ", width, " x ", height, " px for patches of ", patch,
                    " px; choose a size that is a multiple of it"));
  }
  const auto type = pictures.scalar_type();
  const torch::Tensor patches =
      torch::conv2d(pictures, in_type(embedding_.weight, type), in_type(embedding_.bias, type),
                    /*stride=*/patch)
          .flatten(2)
          .transpose(1, 2);
  const torch::Tensor all = positions(height / patch, width / patch).to(type);
  const std::int64_t placed = shape_.placed;
  torch::Tensor first = in_type(class_token_, type);
  if (placed > 1) first = torch::cat({first, in_type(registers_, type)}, 1);
  if (placed > 0) first = first + all.narrow(1, 0, placed);
  if (placed < 2 && registers_.defined()) first = torch::cat({first, in_type(registers_, type)}, 1);
  return torch::cat(
      {first.expand({n, -1, -1}), patches + all.narrow(1, placed, all.size(1) - placed)}, 1);
}

torch::Tensor VisionTransformer::normalised(const torch::Tensor& tokens, const Linear& norm) const {
  const auto type = tokens.scalar_type();
  return torch::layer_norm(tokens, {shape_.width}, in_type(norm.weight, type),
                           in_type(norm.bias, type), kNormEpsilon);
}

torch::Tensor VisionTransformer::attended(const torch::Tensor& tokens, const Block& block,
                                          Pass pass) const {
  const std::int64_t n = tokens.size(0), count = tokens.size(1), each = shape_.head_width;
  const auto type = tokens.scalar_type();
  const auto parts =
      at::linear(tokens, in_type(block.qkv.weight, type), in_type(block.qkv.bias, type))
          .reshape({n, count, 3, shape_.width / each, each})
          .permute({2, 0, 3, 1, 4})
          .unbind(0);
  torch::Tensor mixed;
  if (pass.training) {
    // Step by step: the gradients of the fused form differ from run to run on a GPU.
    const torch::Tensor alike =
        parts[0].matmul(parts[1].transpose(2, 3)) / std::sqrt(static_cast<double>(each));
    mixed = alike.softmax(-1).matmul(parts[2]);
  } else {
    mixed = at::scaled_dot_product_attention(parts[0], parts[1], parts[2]);
  }
  return at::linear(mixed.transpose(1, 2).reshape({n, count, shape_.width}),
                    in_type(block.projection.weight, type), in_type(block.projection.bias, type));
}

torch::Tensor VisionTransformer::forward(const torch::Tensor& pictures, Pass pass) const {
  const auto type = pictures.scalar_type();
  const auto scaled = [type](const torch::Tensor& change, const torch::Tensor& scale) {
    return scale.defined() ? change * in_type(scale, type) : change;
  };
  torch::Tensor tokens = tokens_of(pictures);
  for (const Block& block : blocks_) {
    tokens = tokens + scaled(attended(normalised(tokens, block.norm1), block, pass), block.scale1);
    const torch::Tensor inner =
        torch::gelu(at::linear(normalised(tokens, block.norm2), in_type(block.hidden.weight, type),
                               in_type(block.hidden.bias, type)));
    tokens = tokens + scaled(at::linear(inner, in_type(block.out.weight, type),
                                        in_type(block.out.bias, type)),
                             block.scale2);
  }
  return normalised(tokens.select(1, 0), norm_);
}

std::shared_ptr<Encoder> make_vision_transformer(const NamedTensors& weights,
                                                 const std::filesystem::path& file) {
  try {
    return std::make_shared<TransformerEncoder>(weights);
  } catch (const Error& error) {
    throw Error(cat(file.string(), ": ", error.what()));
  }
}

}  // namespace riffle

// A Vision Transformer (Dosovitskiy et al., 2021), to train or to encode with weights from
// elsewhere. Parameters have the names that timm and DINOv2 use ("patch_embed.proj.weight",
// "blocks.0.attn.qkv.weight", ...).
//
// Features are the class token after the last norm. Pictures may have any size that whole patches
// fill: position embeddings are resized to their grid as those do who made the weights.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "riffle/model/backbone.h"
#include "riffle/model/encoder.h"
#include "riffle/tensors/named_tensors.h"

namespace riffle {

// What the weights of a Vision Transformer are shaped like.
struct TransformerShape {
  std::int64_t width = 0;
  std::int64_t head_width = 64;
  // Side of a patch, px.
  std::int64_t patch = 16;
  std::int64_t blocks = 12;
  // Of the two layers after the attention.
  std::int64_t hidden = 0;
  // Patches on a side that there are position embeddings for.
  std::int64_t grid = 14;
  // Position embeddings before those of the patches: of the class, of class and registers, or none.
  std::int64_t placed = 1;
  std::int64_t registers = 0;
  // "register_tokens" (DINOv2) or "reg_token" (timm).
  std::string register_name = "register_tokens";
  bool layer_scale = false;
  // Position embeddings are resized with antialiasing, as timm and DINOv2 with registers do; or
  // without, and as if the grid were a tenth of a patch larger: so DINOv2 does without registers.
  bool antialias = true;
};

class VisionTransformer : public Backbone {
 public:
  // As timm has it: config.arch says how many heads there are, config.width how wide each is, and
  // config.stem the side of patches: standard 16 px, stride2 8, small 4.
  VisionTransformer(const ModelConfig& config, const Init& init);
  // To encode, not to train: the weights say what it is, and heads are 64 wide. Throws Error,
  // naming the tensor, if one is missing or does not fit. Ignores what encoding does not need: a
  // classifier ("head.*"), the mask token.
  explicit VisionTransformer(const NamedTensors& weights);

  // Returns whether the weights look like those of a Vision Transformer.
  static bool is_one(const NamedTensors& weights);

  // Throws Error for pictures that whole patches do not fill.
  torch::Tensor forward(const torch::Tensor& pictures, Pass pass) const override;
  std::int64_t features() const override { return shape_.width; }

  const TransformerShape& shape() const { return shape_; }

 private:
  struct Linear {
    torch::Tensor weight;
    torch::Tensor bias;
  };
  struct Block {
    Linear norm1, qkv, projection, norm2, hidden, out;
    torch::Tensor scale1, scale2;  // not defined without layer scale
  };
  // Returns the first values of a parameter.
  using Values = std::function<torch::Tensor(const std::string& name, at::IntArrayRef shape)>;

  void build(const Values& values);
  torch::Tensor add(const std::string& name, const torch::Tensor& value);
  torch::Tensor positions(std::int64_t rows, std::int64_t columns) const;
  torch::Tensor tokens_of(const torch::Tensor& pictures) const;
  torch::Tensor normalised(const torch::Tensor& tokens, const Linear& norm) const;
  torch::Tensor attended(const torch::Tensor& tokens, const Block& block, Pass pass) const;

  TransformerShape shape_;
  std::map<std::string, std::shared_ptr<torch::nn::Module>> parts_;  // by the path of their names
  Linear embedding_;
  torch::Tensor class_token_, registers_, positions_;
  std::vector<Block> blocks_;
  Linear norm_;
};

// Returns what the configuration of a network to train comes to.
TransformerShape transformer_shape(const ModelConfig& config);

// Throws Error, naming the file that the weights came from, if they are not of a Vision
// Transformer.
std::shared_ptr<Encoder> make_vision_transformer(const NamedTensors& weights,
                                                 const std::filesystem::path& file);

}  // namespace riffle

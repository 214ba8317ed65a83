// A Vision Transformer to encode with, from weights under the names that DINOv2 and timm use
// ("patch_embed.proj.weight", "blocks.0.attn.qkv.weight", ...). The weights say what it is: width,
// depth, patch size, layer scale, register tokens. riffle does not train it.
//
// Features are the class token after the last norm. Pictures may have any size that whole patches
// fill: position embeddings are resized to their grid (bicubic).
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "riffle/model/encoder.h"
#include "riffle/tensors/named_tensors.h"

namespace riffle {

class VisionTransformer : public Encoder {
 public:
  // Throws Error, naming the tensor, if one is missing or does not fit. Ignores what encoding does
  // not need: a classifier ("head.*"), the mask token.
  explicit VisionTransformer(const NamedTensors& weights);

  // Returns whether the weights look like those of a Vision Transformer.
  static bool is_one(const NamedTensors& weights);

  // Throws Error for pictures that whole patches do not fill.
  torch::Tensor encode(const torch::Tensor& pictures) override;
  std::int64_t encoder_dim() const override { return width_; }

  std::int64_t patch() const { return patch_; }
  // Returns "ViT of width 384, 12 blocks, patches of 14".
  std::string architecture() const;

 private:
  struct Linear {
    torch::Tensor weight;
    torch::Tensor bias;
  };
  struct Block {
    Linear norm1, qkv, projection, norm2, hidden, out;
    torch::Tensor scale1, scale2;  // not defined without layer scale
  };

  const torch::Tensor& take(const NamedTensors& weights, const std::string& name,
                            at::IntArrayRef shape);
  Linear take_linear(const NamedTensors& weights, const std::string& name, at::IntArrayRef shape);
  Block take_block(const NamedTensors& weights, const std::string& name);
  torch::Tensor positions(std::int64_t rows, std::int64_t columns) const;
  torch::Tensor normalised(const torch::Tensor& tokens, const Linear& norm) const;
  torch::Tensor attended(const torch::Tensor& tokens, const Block& block) const;

  std::int64_t width_ = 0;
  std::int64_t patch_ = 0;
  Linear embedding_;
  torch::Tensor class_token_, registers_, positions_;
  std::vector<Block> blocks_;
  Linear norm_;
};

// Throws Error, naming the file that the weights came from, if they are not of a Vision
// Transformer.
std::shared_ptr<VisionTransformer> make_vision_transformer(const NamedTensors& weights,
                                                           const std::filesystem::path& file);

}  // namespace riffle

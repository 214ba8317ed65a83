#include "riffle/model/vision_transformer.h"

#include <cstdlib>
#include <filesystem>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/utils.h>

#include "riffle/base/error.h"
#include "riffle/base/testing/temp_folder.h"
#include "riffle/base/text.h"
#include "riffle/model/encoder_weights.h"
#include "riffle/tensors/safetensors.h"

namespace riffle {
namespace {

using testing::HasSubstr;

struct Kind {
  std::string name;
  std::int64_t width = 64;
  std::int64_t patch = 14;
  std::int64_t grid = 3;  // patches on a side, of the position embeddings
  std::int64_t blocks = 2;
  bool layer_scale = true;
  std::int64_t registers = 0;
  std::string register_name = "register_tokens";
  std::int64_t placed = 1;
  bool mask_token = false;  // as DINOv2's own files have
};

NamedTensors random_weights(const Kind& kind) {
  torch::manual_seed(3);
  const std::int64_t width = kind.width;
  NamedTensors weights;
  const auto add = [&](const std::string& name, at::IntArrayRef shape, double around = 0) {
    weights.emplace_back(name, around + 0.2 * torch::randn(shape));
  };
  const auto add_linear = [&](const std::string& name, std::int64_t out, std::int64_t into) {
    add(name + ".weight", {out, into});
    add(name + ".bias", {out});
  };
  const auto add_norm = [&](const std::string& name) {
    add(name + ".weight", {width}, 1);
    add(name + ".bias", {width});
  };
  add("cls_token", {1, 1, width});
  add("pos_embed", {1, kind.placed + kind.grid * kind.grid, width});
  if (kind.mask_token) add("mask_token", {1, width});
  if (kind.registers > 0) add(kind.register_name, {1, kind.registers, width});
  add("patch_embed.proj.weight", {width, 3, kind.patch, kind.patch});
  add("patch_embed.proj.bias", {width});
  for (std::int64_t i = 0; i < kind.blocks; ++i) {
    const std::string name = cat("blocks.", i, ".");
    add_norm(name + "norm1");
    add_linear(name + "attn.qkv", 3 * width, width);
    add_linear(name + "attn.proj", width, width);
    add_norm(name + "norm2");
    add_linear(name + "mlp.fc1", 4 * width, width);
    add_linear(name + "mlp.fc2", width, 4 * width);
    if (kind.layer_scale) add(name + "ls1.gamma", {width}, 0.5);
    if (kind.layer_scale) add(name + "ls2.gamma", {width}, 0.5);
  }
  add_norm("norm");
  add_linear("head", 10, width);
  return weights;
}

class VisionTransformerParity : public TempFolder, public testing::WithParamInterface<Kind> {};
INSTANTIATE_TEST_SUITE_P(
    All, VisionTransformerParity,
    testing::Values(
        Kind{.name = "dinov2", .mask_token = true},
        Kind{.name = "dinov2_registers", .width = 128, .registers = 4, .mask_token = true},
        Kind{.name = "timm", .width = 192, .patch = 16, .layer_scale = false},
        Kind{.name = "timm_registers", .registers = 4, .register_name = "reg_token", .placed = 0},
        Kind{.name = "timm_registers_with_places",
             .registers = 4,
             .register_name = "reg_token",
             .placed = 5}),
    [](const auto& known) { return known.param.name; });

TEST_P(VisionTransformerParity, GivesWhatTorchsOwnLayersGive) {
  if (std::string(RIFFLE_PYTHON).empty() || !std::filesystem::exists(RIFFLE_PYTHON)) {
    GTEST_SKIP() << "needs a Python with torch; none was found at configure time";
  }
  NamedTensors weights = random_weights(GetParam());
  const auto model = make_vision_transformer(weights, "weights.safetensors");
  EXPECT_EQ(model->encoder_dim(), GetParam().width);
  // The size of the position embeddings, a larger, a much larger and a smaller one.
  const std::int64_t patch = GetParam().patch;
  NamedTensors batches, input = weights;
  for (const auto& [rows, columns] :
       {std::pair(3, 3), std::pair(5, 5), std::pair(2, 9), std::pair(1, 2)}) {
    const torch::Tensor pictures = torch::randn({2, 3, rows * patch, columns * patch});
    batches.emplace_back(cat(rows, "x", columns), pictures);
  }
  add_part(input, "pictures/", batches);
  const auto in = folder_ / "in.safetensors", out = folder_ / "out.safetensors";
  write_safetensors(in, input);
  const std::string command = cat("LD_PRELOAD= '", RIFFLE_PYTHON, "' '", RIFFLE_SOURCE_DIR,
                                  "/riffle/model/testdata/vision_transformer_reference.py' '",
                                  in.string(), "' '", out.string(), "'");
  ASSERT_EQ(std::system(command.c_str()), 0) << command;
  const NamedTensors reference = read_safetensors(out).tensors;
  for (const auto& [name, pictures] : batches) {
    const torch::Tensor expected = find_tensor(reference, "encoded/" + name);
    const torch::Tensor encoded = model->encode(pictures);
    ASSERT_EQ(encoded.sizes(), expected.sizes());
    EXPECT_LE((encoded - expected).norm().item<double>(), 1e-4 * expected.norm().item<double>())
        << name;
  }
}

TEST(VisionTransformer, RefusesWhatDoesNotFit) {
  const auto refusal = [](const NamedTensors& weights) -> std::string {
    try {
      VisionTransformer model(weights);
      return "";
    } catch (const Error& error) {
      return error.what();
    }
  };
  const NamedTensors good = random_weights({});
  EXPECT_EQ(refusal(good), "");
  EXPECT_TRUE(VisionTransformer::is_one(good));
  EXPECT_FALSE(VisionTransformer::is_one({{"conv1.weight", torch::zeros({1})}}));
  for (const auto& [name, tensor] : good) {
    if (name.starts_with("head") || name.starts_with("mask") || name.find("ls1") != name.npos) {
      continue;
    }
    NamedTensors bad;
    for (const auto& entry : good) {
      const bool spoilt = entry.first == name;
      bad.emplace_back(entry.first, spoilt ? entry.second.flatten().narrow(0, 0, 3) : entry.second);
    }
    EXPECT_NE(refusal(bad), "") << name;
    std::erase_if(bad, [&](const auto& entry) { return entry.first == name; });
    const bool is_next_block = name == "blocks.1.norm1.weight";  // then it has one block
    EXPECT_EQ(refusal(bad).empty(), is_next_block) << name;
  }
  VisionTransformer model(good);
  EXPECT_THROW(model.forward(torch::zeros({1, 3, 50, 50}), {}), Error);
}

class TrainedTransformer : public TempFolder {};

TEST_F(TrainedTransformer, IsExportedUnderTimmsNames) {
  const ModelConfig config{.arch = Arch::vit_s, .stem = Stem::small, .projector_out = 16};
  const auto objective = make_objective(config, /*seed=*/7);
  const auto path = folder_ / "vit.safetensors";
  write_encoder(path, encoder_weights(*objective, config, 32));
  const torch::Tensor pictures = torch::randn({2, 3, 32, 32});
  const torch::Tensor expected = objective->encode(pictures);
  EXPECT_EQ(expected.size(1), 384);
  const EncoderWeights weights = read_encoder(path);
  EXPECT_EQ(weights.architecture(), "vit-s, stem small, width 64");
  EXPECT_TRUE(make_encoder(weights)->encode(pictures).equal(expected));
  // As a program that knows nothing of riffle reads it.
  const NamedTensors tensors = read_safetensors(path).tensors;
  EXPECT_TRUE(make_vision_transformer(tensors, path)->encode(pictures).equal(expected));
  write_safetensors(path, tensors);
  EXPECT_EQ(read_encoder(path).architecture(), "vit-s, stem small, width 64");
}

}  // namespace
}  // namespace riffle

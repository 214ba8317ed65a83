#include "riffle/model/encoder_weights.h"

#include <algorithm>
#include <array>
#include <optional>
#include <set>
#include <stdexcept>
#include <vector>

#include <torch/types.h>

#include "riffle/augment/imagenet_scale.h"
#include "riffle/base/error.h"
#include "riffle/base/text.h"
#include "riffle/model/vision_transformer.h"
#include "riffle/tensors/torch_file.h"

namespace riffle {
namespace {

constexpr std::string_view kEncoder = "encoder.";
constexpr std::string_view kAverage = "average.";  // of the encoder, if model.average keeps one
// Of ResNets and of transformers.
constexpr std::array<std::string_view, 2> kClassifiers = {"fc.", "head."};
constexpr std::string_view kCounter = "num_batches_tracked";
// Of a stage.
constexpr int kMostBlocks = 6;
// The largest kernel that every ResNet has. Its two sides are each this many times the width.
constexpr const char* kLargestKernel = "layer4.0.conv2.weight";
constexpr std::int64_t kLargestWidths = 8;
// What every transformer has, and no ResNet.
constexpr const char* kPatchWeights = "patch_embed.proj.weight";
const std::array<std::string, 3> kArchitectureKeys = {"arch", "stem", "width"};

std::string model_value(ModelConfig model, const std::string& key) {
  Fields fields;
  model.describe(fields);
  return fields.get("model." + key);
}

std::string channel_text(const float (&values)[3]) {
  return cat(values[0], ", ", values[1], ", ", values[2]);
}

ModelConfig model_of_metadata(const std::map<std::string, std::string>& metadata) {
  ModelConfig model;
  Fields fields;
  model.describe(fields);
  for (const auto& key : kArchitectureKeys) fields.set("model." + key, metadata.at(key));
  return model;
}

// Without metadata: timm's own files.
ModelConfig transformer_of_shapes(const NamedTensors& tensors) {
  ModelConfig model;
  for (const Arch arch : {Arch::vit_s, Arch::vit_b}) {
    for (const Stem stem : {Stem::standard, Stem::stride2, Stem::small}) {
      model.arch = arch;
      model.stem = stem;
      const TransformerShape shape = transformer_shape(model);
      const std::array wanted{shape.width, std::int64_t{3}, shape.patch, shape.patch};
      if (tensor_or_null(tensors, kPatchWeights)->sizes() == at::IntArrayRef(wanted)) return model;
    }
  }
  throw Error(cat("its '", kPatchWeights, "' is ", tensor_or_null(tensors, kPatchWeights)->sizes(),
                  "; riffle trains vit-s and vit-b with patches of 16, 8 and 4 px"));
}

// Without metadata: torchvision's own files.
ModelConfig model_of_shapes(const NamedTensors& tensors) {
  if (tensor_or_null(tensors, kPatchWeights) != nullptr) return transformer_of_shapes(tensors);
  const torch::Tensor* stem = tensor_or_null(tensors, "conv1.weight");
  if (stem == nullptr || stem->dim() != 4) throw Error("it has no 'conv1.weight' of a ResNet");
  ModelConfig model;
  model.width = stem->size(0);
  if (stem->size(2) != 7) {
    throw Error(cat("its first convolution has ", stem->size(2), " x ", stem->size(3),
                    " pixels; the file's metadata must say arch, stem (small, stride2) and width"));
  }
  std::vector<int> blocks;
  for (int stage = 1; stage <= 4; ++stage) {
    int count = 0;
    while (count <= kMostBlocks &&
           tensor_or_null(tensors, cat("layer", stage, '.', count, ".conv1.weight")) != nullptr) {
      ++count;
    }
    blocks.push_back(count);
  }
  const bool bottleneck = tensor_or_null(tensors, "layer1.0.conv3.weight") != nullptr;
  if (blocks == std::vector{1, 1, 1, 1} && !bottleneck) {
    model.arch = Arch::resnet10;
  } else if (blocks == std::vector{2, 2, 2, 2} && !bottleneck) {
    model.arch = Arch::resnet18;
  } else if (blocks == std::vector{3, 4, 6, 3} && bottleneck) {
    model.arch = Arch::resnet50;
  } else {
    throw Error(cat("its stages have ", blocks[0], ", ", blocks[1], ", ", blocks[2], " and ",
                    blocks[3], bottleneck ? " bottleneck" : " basic",
                    " blocks; riffle has resnet10, resnet18 and resnet50"));
  }
  return model;
}

// A network is built before weights are copied into it. A file that only claims to be wide must not
// have one built that is many times larger than the file.
void require_claimed_width(const EncoderWeights& weights) {
  if (is_transformer(weights.model.arch)) {
    const torch::Tensor& token = weights.at("cls_token");
    const std::int64_t heads = weights.model.arch == Arch::vit_b ? 12 : 6;
    if (token.numel() % heads == 0 && token.numel() / heads == weights.model.width) return;
    throw Error(cat("its 'cls_token' has shape ", token.sizes(), ", which is not of ",
                    weights.architecture()));
  }
  const torch::Tensor& kernel = weights.at(kLargestKernel);
  const bool fits = kernel.dim() == 4 && kernel.size(0) == kernel.size(1) &&
                    kernel.size(0) % kLargestWidths == 0 &&
                    kernel.size(0) / kLargestWidths == weights.model.width;
  if (!fits) {
    throw Error(cat("its '", kLargestKernel, "' has shape ", kernel.sizes(), ", which is not of ",
                    weights.architecture()));
  }
}

}  // namespace

const torch::Tensor& EncoderWeights::at(const std::string& name) const {
  const torch::Tensor* tensor = tensor_or_null(tensors, name);
  if (tensor == nullptr) throw Error(cat("weights: '", name, "' of the encoder is missing"));
  return *tensor;
}

std::map<std::string, std::string> EncoderWeights::metadata() const {
  std::map<std::string, std::string> metadata = {{"format", "pt"},
                                                 {"producer", "riffle"},
                                                 {"size", std::to_string(size)},
                                                 {"mean", channel_text(kMean)},
                                                 {"std", channel_text(kStd)}};
  for (const auto& key : kArchitectureKeys) metadata[key] = model_value(model, key);
  return metadata;
}

std::string EncoderWeights::architecture() const {
  return cat(model_value(model, "arch"), ", stem ", model_value(model, "stem"), ", width ",
             model.width);
}

EncoderWeights encoder_weights(const Objective& objective, const ModelConfig& model,
                               std::int64_t size) {
  EncoderWeights weights;
  weights.model.arch = model.arch;
  weights.model.stem = model.stem;
  weights.model.width = model.width;
  weights.size = size;
  const std::string prefix = model.average > 0 ? cat(kAverage, kEncoder) : std::string(kEncoder);
  for (auto& [name, tensor] : save_state(objective)) {
    if (name.starts_with(prefix)) weights.tensors.emplace_back(name.substr(prefix.size()), tensor);
  }
  return weights;
}

void write_encoder(const std::filesystem::path& path, const EncoderWeights& weights) {
  write_safetensors(path, weights.tensors, weights.metadata());
}

namespace {

EncoderWeights encoder_of(Safetensors file, const std::filesystem::path& path) {
  EncoderWeights weights;
  for (auto& [name, tensor] : file.tensors) {
    const auto begins = [&](std::string_view classifier) { return name.starts_with(classifier); };
    if (std::ranges::any_of(kClassifiers, begins)) continue;
    weights.tensors.emplace_back(name, std::move(tensor));
  }
  try {
    const bool described = file.metadata.contains(kArchitectureKeys.front());
    weights.model = described ? model_of_metadata(file.metadata) : model_of_shapes(weights.tensors);
    if (const auto size = file.metadata.find("size"); described && size != file.metadata.end()) {
      weights.size = parse_integer(size->second, "the metadata's size");
    }
    require_claimed_width(weights);
  } catch (const std::out_of_range&) {
    throw Error(cat(path.string(), ": its metadata must say arch, stem and width"));
  } catch (const Error& error) {
    throw Error(cat(path.string(), ": ", error.what()));
  }
  return weights;
}

}  // namespace

EncoderWeights read_encoder(const std::filesystem::path& path) {
  return encoder_of(read_tensor_file(path), path);
}

void require_saved_widths(const ModelConfig& model, const NamedTensors& network) {
  require_claimed_width({.tensors = find_part(network, kEncoder), .model = model});
  const auto require_matrix = [&](const std::string& name, std::int64_t rows,
                                  std::int64_t columns) {
    const torch::Tensor* found = tensor_or_null(network, name);
    if (found == nullptr) throw Error(cat("weights: '", name, "' of the model is missing"));
    const std::array wanted{rows, columns};
    if (found->sizes() == at::IntArrayRef(wanted)) return;
    throw Error(cat("weights: '", name, "' has shape ", found->sizes(), "; the model needs ",
                    at::IntArrayRef(wanted)));
  };
  const torch::Tensor* square = tensor_or_null(network, "projector.3.weight");
  const bool as_wide_as_encoder = model.projector_hidden == 0 && square != nullptr;
  const std::int64_t hidden =
      as_wide_as_encoder && square->dim() > 0 ? square->size(0) : model.projector_hidden;
  require_matrix("projector.3.weight", hidden, hidden);
  require_matrix("projector.6.weight", model.projector_out, hidden);
  const bool predicts = model.objective == "simsiam" || model.objective == "byol";
  if (predicts) require_matrix("predictor.0.weight", model.predictor_hidden, model.projector_out);
  if (model.align_weight > 0) {
    require_matrix("align.head.0.weight", model.predictor_hidden, model.projector_out);
  }
}

void load_initial(Objective& objective, const ModelConfig& model,
                  const std::filesystem::path& path) {
  Safetensors file = read_tensor_file(path);
  const auto is_encoder = [](const auto& item) { return item.first.starts_with(kEncoder); };
  if (std::ranges::any_of(file.tensors, is_encoder)) return load_state(objective, file.tensors);
  load_encoder(objective, model, encoder_of(std::move(file), path));
}

void write_network(const std::filesystem::path& path, const Objective& objective,
                   const std::map<std::string, std::string>& metadata) {
  write_safetensors(path, save_state(objective), metadata);
}

void load_encoder(Objective& objective, const ModelConfig& model, const EncoderWeights& weights) {
  const ModelConfig& given = weights.model;
  if (given.arch != model.arch || given.stem != model.stem || given.width != model.width) {
    throw Error(cat("the weights are of ", weights.architecture(), "; they need --arch ",
                    model_value(given, "arch"), " --stem ", model_value(given, "stem"), " --width ",
                    given.width));
  }
  NamedTensors state;
  for (const auto& [name, tensor] : save_state(objective)) {
    if (!name.starts_with(kEncoder)) {
      state.emplace_back(name, tensor);
    } else if (name.ends_with(kCounter) &&
               tensor_or_null(weights.tensors, name.substr(kEncoder.size())) == nullptr) {
      // Old files lack the counters, and no result depends on them.
      state.emplace_back(name, torch::zeros_like(tensor));
    }
  }
  for (const auto& [name, tensor] : weights.tensors) {
    state.emplace_back(cat(kEncoder, name), tensor);
  }
  load_state(objective, state);
}

std::shared_ptr<Objective> make_encoder(const EncoderWeights& weights) {
  ModelConfig model = weights.model;
  model.projector_hidden = model.projector_out = model.predictor_hidden = 1;
  auto objective = make_objective(model, /*seed=*/0);
  load_encoder(*objective, model, weights);
  return objective;
}

}  // namespace riffle

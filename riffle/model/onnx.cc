#include "riffle/model/onnx.h"

#include <cmath>
#include <cstdint>
#include <vector>

#include <torch/types.h>

#include "riffle/base/error.h"
#include "riffle/base/file.h"
#include "riffle/base/protobuf.h"
#include "riffle/base/text.h"
#include "riffle/model/layers.h"

namespace riffle {
namespace {

// Numbers of fields and values as onnx.proto has them.
namespace model_field {
constexpr int kIrVersion = 1, kProducer = 2, kGraph = 7, kOpset = 8, kMetadata = 14;
}
namespace graph_field {
constexpr int kNode = 1, kName = 2, kInitializer = 5, kInput = 11, kOutput = 12;
}
namespace node_field {
constexpr int kInput = 1, kOutput = 2, kName = 3, kOperator = 4, kAttribute = 5;
}
namespace attribute_field {
constexpr int kName = 1, kInteger = 3, kIntegers = 8, kType = 20;
}
namespace tensor_field {
constexpr int kDims = 1, kType = 2, kName = 8, kRaw = 9;
}
constexpr std::int64_t kAttributeInteger = 2, kAttributeIntegers = 7, kFloat = 1;
constexpr std::int64_t kIrVersion = 8, kOpset = 17;

ProtobufMessage integers_attribute(const std::string& name,
                                   const std::vector<std::int64_t>& values) {
  ProtobufMessage attribute;
  attribute.add_text(attribute_field::kName, name);
  for (const auto value : values) attribute.add_integer(attribute_field::kIntegers, value);
  attribute.add_integer(attribute_field::kType, kAttributeIntegers);
  return attribute;
}

ProtobufMessage tensor(const std::string& name, const torch::Tensor& values) {
  const torch::Tensor rows = values.to(torch::kFloat32).contiguous();
  ProtobufMessage message;
  for (const auto extent : rows.sizes()) message.add_integer(tensor_field::kDims, extent);
  message.add_integer(tensor_field::kType, kFloat);
  message.add_text(tensor_field::kName, name);
  message.add_bytes(tensor_field::kRaw, {static_cast<const std::byte*>(rows.const_data_ptr()),
                                         static_cast<std::size_t>(rows.nbytes())});
  return message;
}

struct Dimension {
  std::string name;  // free when it has one
  std::int64_t extent = 0;
};

// An input or an output of the graph: name and type.
ProtobufMessage value_info(const std::string& name, const std::vector<Dimension>& dimensions) {
  ProtobufMessage shape;
  for (const auto& [free, extent] : dimensions) {
    ProtobufMessage dimension;
    if (free.empty()) {
      dimension.add_integer(1, extent);
    } else {
      dimension.add_text(2, free);
    }
    shape.add_message(1, dimension);
  }
  ProtobufMessage tensor_type;
  tensor_type.add_integer(1, kFloat);
  tensor_type.add_message(2, shape);
  ProtobufMessage type;
  type.add_message(1, tensor_type);
  ProtobufMessage info;
  info.add_text(1, name);
  info.add_message(2, type);
  return info;
}

// The nodes of the network, each named after what it makes.
class Graph {
 public:
  explicit Graph(const EncoderWeights& weights) : weights_(weights) {
    graph_.add_text(graph_field::kName, "encoder");
    graph_.add_message(graph_field::kInput,
                       value_info("pictures", {{"batch"}, {"", 3}, {"height"}, {"width"}}));
    std::string maps = relu(conv("pictures", "conv1", "bn1", stem_stride()));
    if (weights.model.stem == Stem::standard) maps = max_pool(maps);
    for (int stage = 1; stage <= 4; ++stage) {
      for (int i = 0; has(cat("layer", stage, '.', i, ".conv1")); ++i) {
        maps = block(maps, cat("layer", stage, '.', i), stage > 1 && i == 0 ? 2 : 1);
      }
    }
    node("GlobalAveragePool", {maps}, "pool");
    node("Flatten", {"pool"}, "features");
    graph_.add_message(graph_field::kOutput, value_info("features", {{"batch"}, {"", channels_}}));
  }

  const ProtobufMessage& message() const { return graph_; }

 private:
  bool has(const std::string& layer) const {
    for (const auto& [name, unused] : weights_.tensors) {
      if (name == layer + ".weight") return true;
    }
    return false;
  }

  std::int64_t stem_stride() const { return weights_.model.stem == Stem::small ? 1 : 2; }

  std::string node(const std::string& op, const std::vector<std::string>& inputs,
                   const std::string& output, const std::vector<ProtobufMessage>& attributes = {}) {
    ProtobufMessage message;
    for (const auto& input : inputs) message.add_text(node_field::kInput, input);
    message.add_text(node_field::kOutput, output);
    message.add_text(node_field::kName, output);
    message.add_text(node_field::kOperator, op);
    for (const auto& attribute : attributes) message.add_message(node_field::kAttribute, attribute);
    graph_.add_message(graph_field::kNode, message);
    return output;
  }

  // A convolution with the norm after it folded in.
  std::string conv(const std::string& input, const std::string& layer, const std::string& norm,
                   std::int64_t stride) {
    const auto values = [&](const char* name) {
      return weights_.at(cat(norm, '.', name)).to(torch::kFloat64);
    };
    const torch::Tensor scale =
        values("weight") / (values("running_var") + kBatchNormEpsilon).sqrt();
    const torch::Tensor weight = weights_.at(layer + ".weight").to(torch::kFloat64);
    graph_.add_message(graph_field::kInitializer,
                       tensor(layer + ".weight", weight * scale.reshape({-1, 1, 1, 1})));
    graph_.add_message(graph_field::kInitializer,
                       tensor(layer + ".bias", values("bias") - values("running_mean") * scale));
    channels_ = weight.size(0);
    const std::int64_t kernel = weight.size(2);
    const std::int64_t padding = kernel / 2;
    return node("Conv", {input, layer + ".weight", layer + ".bias"}, layer,
                {integers_attribute("kernel_shape", {kernel, kernel}),
                 integers_attribute("pads", {padding, padding, padding, padding}),
                 integers_attribute("strides", {stride, stride})});
  }

  std::string relu(const std::string& input) { return node("Relu", {input}, input + ".relu"); }

  std::string max_pool(const std::string& input) {
    return node("MaxPool", {input}, "maxpool",
                {integers_attribute("kernel_shape", {3, 3}),
                 integers_attribute("pads", {1, 1, 1, 1}), integers_attribute("strides", {2, 2})});
  }

  std::string block(const std::string& input, const std::string& name, std::int64_t stride) {
    const auto layer = [&](const std::string& from, int number, std::int64_t step) {
      return conv(from, cat(name, ".conv", number), cat(name, ".bn", number), step);
    };
    const bool bottleneck = has(name + ".conv3");
    std::string maps = relu(layer(input, 1, bottleneck ? 1 : stride));
    maps = layer(maps, 2, bottleneck ? stride : 1);
    if (bottleneck) maps = layer(relu(maps), 3, 1);
    const std::string shortcut = name + ".downsample";
    const std::string around =
        has(shortcut + ".0") ? conv(input, shortcut + ".0", shortcut + ".1", stride) : input;
    return relu(node("Add", {maps, around}, name + ".add"));
  }

  const EncoderWeights& weights_;
  ProtobufMessage graph_;
  std::int64_t channels_ = 0;
};

}  // namespace

std::string onnx_model(const EncoderWeights& weights) {
  if (is_transformer(weights.model.arch)) {
    throw Error(
        "riffle writes ONNX models of ResNets; export a transformer as safetensors, which timm "
        "reads");
  }
  ProtobufMessage opset;
  opset.add_text(1, "");
  opset.add_integer(2, kOpset);
  ProtobufMessage model;
  model.add_integer(model_field::kIrVersion, kIrVersion);
  model.add_text(model_field::kProducer, "riffle");
  model.add_message(model_field::kGraph, Graph(weights).message());
  model.add_message(model_field::kOpset, opset);
  for (const auto& [key, value] : weights.metadata()) {
    if (key == "format") continue;  // that of safetensors
    ProtobufMessage entry;
    entry.add_text(1, key);
    entry.add_text(2, value);
    model.add_message(model_field::kMetadata, entry);
  }
  return model.bytes();
}

void write_onnx(const std::filesystem::path& path, const EncoderWeights& weights) {
  write_atomically(path, onnx_model(weights));
}

}  // namespace riffle

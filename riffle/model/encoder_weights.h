// An encoder's weights without the heads, under torchvision's names (transformers: timm's), to and
// from safetensors files and from those of torch.save():
// what `riffle export` writes and model.init reads.
//
// The file's metadata says what the network is (arch, stem, width, features), which pictures it
// learned from (size, px) and what it wants to be fed (mean, std of RGB values in [0, 1]). A file
// without metadata is understood by the shapes of its tensors; a classifier (fc.*, head.*) is
// ignored.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>

#include "riffle/model/model_config.h"
#include "riffle/model/objective.h"
#include "riffle/model/state.h"

namespace riffle {

struct EncoderWeights {
  // "conv1.weight", "layer1.0.bn1.running_mean", ...; on the CPU.
  NamedTensors tensors;
  // arch, stem and width; the rest is default.
  ModelConfig model;
  // Side of the pictures it was trained on, px; 0: unknown.
  std::int64_t size = 0;

  // Throws Error if there is no such tensor.
  const torch::Tensor& at(const std::string& name) const;
  // Returns the text that safetensors files and ONNX models carry.
  std::map<std::string, std::string> metadata() const;
  // Returns "resnet18, stem small, width 16".
  std::string architecture() const;
};

// Returns copies of the weights that `objective`, which has the configuration `model`, encodes
// with.
EncoderWeights encoder_weights(const Objective& objective, const ModelConfig& model,
                               std::int64_t size);

// Throws Error if the file cannot be written.
void write_encoder(const std::filesystem::path& path, const EncoderWeights& weights);

// Throws Error, naming the file, if it is not one of these or does not hold a network that riffle
// trains.
EncoderWeights read_encoder(const std::filesystem::path& path);

// Copies the weights into the encoder of `objective`, which has the configuration `model`. Throws
// Error if they are of another architecture.
void load_encoder(Objective& objective, const ModelConfig& model, const EncoderWeights& weights);

// Begins with the weights in a file: the encoder's alone, or, if the file holds a whole network
// under riffle's own names (write_network()), those of the heads too. Throws Error as
// read_encoder(), load_encoder() and load_state() do.
void load_initial(Objective& objective, const ModelConfig& model,
                  const std::filesystem::path& path);

// Throws Error unless the tensors of a whole network, under riffle's own names, are as wide as
// `model` says. To be called before one is built: it must not be many times larger than what there
// is to fill it with.
void require_saved_widths(const ModelConfig& model, const NamedTensors& network);

// Writes encoder and heads, for load_initial(). Throws Error if the file cannot be written.
void write_network(const std::filesystem::path& path, const Objective& objective,
                   const std::map<std::string, std::string>& metadata = {});

// Returns an encoder with these weights and the smallest heads: to encode with, not to train.
std::shared_ptr<Objective> make_encoder(const EncoderWeights& weights);

}  // namespace riffle

// An encoder's weights by themselves, under torchvision's names, to and from safetensors files:
// what `riffle export` writes and model.init reads.
//
// The file's metadata says what the network is (arch, stem, width, features), which pictures it
// learned from (size, px) and what it wants to be fed (mean, std of RGB values in [0, 1]). A file
// without metadata is understood by the shapes of its tensors; a classifier (fc.*) is passed over.
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
  NamedTensors tensors;   // "conv1.weight", "layer1.0.bn1.running_mean", ...; on the CPU
  ModelConfig model;      // arch, stem and width; the rest is default
  std::int64_t size = 0;  // side of the pictures it was trained on, px; 0: unknown

  const torch::Tensor& at(const std::string& name) const;
  // Text for files: of safetensors, of ONNX models.
  std::map<std::string, std::string> metadata() const;
  // "resnet18, stem small, width 16"
  std::string architecture() const;
};

// The weights of the part of `objective` named "encoder", copied.
EncoderWeights encoder_weights(const Objective& objective, const ModelConfig& model,
                               std::int64_t size);

// Throws Error when it cannot be written.
void write_encoder(const std::filesystem::path& path, const EncoderWeights& weights);

// Throws Error naming the file when it is no safetensors file, or holds no ResNet that riffle has.
EncoderWeights read_encoder(const std::filesystem::path& path);

// Copies them into the encoder of `objective`, which was made from `model`. Throws Error when they
// are of another architecture.
void load_encoder(Objective& objective, const ModelConfig& model, const EncoderWeights& weights);

// An encoder with these weights and nothing worth mentioning behind it: to encode with, not to
// train.
std::shared_ptr<Objective> make_encoder(const EncoderWeights& weights);

}  // namespace riffle

// The encoder that a command works with: of a run, or of a file of weights from anywhere.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "riffle/eval/embedding.h"
#include "riffle/model/model_config.h"
#include "riffle/model/objective.h"
#include "riffle/run/config.h"

namespace riffle {

// Returns what an evaluation feeds the encoder of a run: pictures as they are stored; where that is
// larger than the views, the centre square of a view's size from a picture that is 256/224 times as
// large at most, as in the paper.
EncoderInput evaluation_input(const Config& config);

struct ModelSource {
  // The checkpoint or the weights that were read.
  std::string file;
  // On the CPU.
  std::shared_ptr<Objective> objective;
  ModelConfig model;
  // With `model`: the network before it learned anything.
  std::uint64_t seed = 0;
  // Side of the pictures that it wants, px; 0: unknown.
  std::int64_t size = 0;
  // The short side from which they are cut.
  std::int64_t resize = size;
  // The device that it was trained on.
  std::string device = "cpu";

  // Returns a whole square of `asked` px, or `size` of `resize` if that is 0. Throws Error if both
  // are 0.
  EncoderInput picture_size(std::int64_t asked) const;
};

// An encoder that need not be riffle's own.
struct EncoderSource {
  std::string file;
  // On the CPU.
  std::shared_ptr<Encoder> encoder;
  // As those of ModelSource.
  std::int64_t size = 0;
  std::int64_t resize = size;
  std::string device = "cpu";

  EncoderInput picture_size(std::int64_t asked) const;
};

// Opens what open_model() does, and files with a Vision Transformer from elsewhere
// (vision_transformer.h).
EncoderSource open_encoder(const std::string& from, const std::string& checkpoint = "");

// Opens a run folder or a file with an encoder (encoder_weights.h). `checkpoint`: of
// the run, by its name or by one of its files; default: the newest. Throws Error if `from` is
// neither, if the run has no checkpoint yet, or if a file is damaged or does not fit.
ModelSource open_model(const std::string& from, const std::string& checkpoint = "");

}  // namespace riffle

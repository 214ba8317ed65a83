// The encoder that a command works with: a run's, or that of a file of weights from anywhere.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "riffle/model/model_config.h"
#include "riffle/model/objective.h"

namespace riffle {

struct ModelSource {
  std::string file;  // the checkpoint or weights that were read
  std::shared_ptr<Objective> objective;
  ModelConfig model;
  std::uint64_t seed = 0;      // with `model`: the network before it learned anything
  std::int64_t size = 0;       // side of the pictures that it wants, px; 0: unknown
  std::string device = "cpu";  // that it was trained on; the objective itself is on the CPU

  // `size`, or `asked` unless that is 0. Throws Error when neither is known.
  int picture_size(std::int64_t asked) const;
};

// `from` is a run folder, of which `checkpoint` is read (its name or a file of it), or the newest
// when that is empty; or a safetensors file with an encoder (encoder_weights.h). Throws Error when
// it is neither, when the run has no checkpoint yet, or when a file is damaged or does not fit.
ModelSource open_model(const std::string& from, const std::string& checkpoint = "");

}  // namespace riffle

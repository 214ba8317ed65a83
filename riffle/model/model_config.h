// The network that learns.
#pragma once

#include <cstdint>
#include <string>

#include "riffle/base/fields.h"

namespace riffle {

enum class Arch { resnet18, resnet50, resnet10 };
// standard: 7x7 stride 2 and max-pool. small: 3x3 stride 1, for pictures up to 64 px. stride2: 3x3
// stride 2, no pool.
enum class Stem { standard, small, stride2 };

struct ModelConfig {
  std::string objective = "simsiam";  // a name of objective.cc
  Arch arch = Arch::resnet18;
  Stem stem = Stem::standard;
  std::int64_t width = 64;      // channels of the first stage
  double residual_gamma = 0.0;  // initial scale of a block's last norm; 0: begins as the identity
  // Updates after which the encoder, beginning with one block a stage, gains one more; 0: it has
  // all from the start.
  std::int64_t grow_every = 0;
  std::int64_t projector_hidden = 0;  // 0: the encoder's width
  std::int64_t projector_out = 2048;  // width of the tracked features
  std::int64_t predictor_hidden = 512;
  std::string init = {};  // safetensors file with the encoder's first weights; empty: random ones

  void describe(Fields& fields);
  // Throws Error naming the key whose value makes no sense.
  void validate() const;
};

}  // namespace riffle

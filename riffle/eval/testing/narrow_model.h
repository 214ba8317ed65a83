// For tests: an untrained network that encodes quickly.
#pragma once

#include <memory>

#include "riffle/model/objective.h"

namespace riffle {

// Returns the same one at each call.
inline std::shared_ptr<Objective> narrow_model() {
  return make_objective({.arch = Arch::resnet10,
                         .stem = Stem::stride2,
                         .width = 2,
                         .projector_hidden = 8,
                         .projector_out = 8,
                         .predictor_hidden = 4},
                        5);
}

}  // namespace riffle

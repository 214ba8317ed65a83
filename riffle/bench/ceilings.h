// How fast an update could be at most on this machine: what it has to compute and to move, beside
// what the device reaches when it does nothing else.
#pragma once

#include <c10/core/Device.h>

#include "riffle/model/model_config.h"

namespace riffle {

struct Ceilings {
  // The most that large matrix products or, on a CPU, convolutions reach, in the type that is
  // trained in.
  double operations_per_s = 0;
  double bytes_per_s = 0;  // read and written by a large copy
};

// Takes a few seconds. The best of several measurements: other work on the machine only matters
// when it is there all the time.
Ceilings measure_ceilings(c10::Device device);

// What one picture costs: two views, forward and backward.
struct StepCost {
  // Of convolutions and linear layers, without products with padding; a multiplication and an
  // addition are two.
  double operations = 0;
  double bytes = 0;  // of activations and their gradients, each passed over as often as it must
};

// `number_bytes`: of an activation.
StepCost step_cost(const ModelConfig& model, std::int64_t size, int number_bytes);

}  // namespace riffle

// Layer-wise adaptive rate scaling (You et al., 2017) with momentum, for linear probes:
//   g = gradient * trust * |w| / |gradient|  (the gradient itself where either norm is zero)
//   m = momentum * m + g
//   w = w - lr * m
// No weight decay and no clipping of the rate.
#pragma once

#include <vector>

#include "riffle/tensors/named_tensors.h"

namespace riffle {

struct LarsOptions {
  double trust = 0.001;
  double momentum = 0.9;
};

// step() throws std::logic_error if a parameter has no gradient. Norms stay on the parameters'
// device. Not thread-safe.
class Lars {
 public:
  Lars(NamedTensors parameters, LarsOptions options);
  explicit Lars(NamedTensors parameters) : Lars(std::move(parameters), LarsOptions()) {}

  void step(double lr);
  void zero_grad();

 private:
  NamedTensors parameters_;
  NamedTensors momenta_;
  LarsOptions options_;
};

}  // namespace riffle

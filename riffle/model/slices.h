// Random directions that are others at every update, as a function of seed and update alone, drawn
// on the device: the update is a saved counter there, so that a recorded graph draws others each
// time it is replayed and a run that is resumed draws those it would have drawn.
#pragma once

#include <cstdint>

#include <torch/nn/module.h>
#include <torch/types.h>

namespace riffle {

class Slices : public torch::nn::Module {
 public:
  // Throws Error if there would be 2^32 numbers or more. Has the buffer "update".
  Slices(std::uint64_t seed, std::int64_t count, std::int64_t dim);

  // Returns [count, dim] in float32: rows of unit length, uniform on the sphere.
  torch::Tensor draw() const;

  // Goes to the next update.
  void advance();

 private:
  std::uint32_t key_;
  std::int64_t count_;
  std::int64_t dim_;
  torch::Tensor update_;
};

}  // namespace riffle

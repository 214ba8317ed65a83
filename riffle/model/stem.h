// The first convolution of a network, which takes pictures in any ViewLayout.
#pragma once

#include <cstdint>

#include <torch/nn/module.h>
#include <torch/types.h>

#include "riffle/model/init.h"

namespace riffle {

// The parameter is the weight of a plain convolution of 3 channels; the other layouts rearrange it,
// with the same result up to rounding.
class StemConv : public torch::nn::Module {
 public:
  StemConv(const Init& init, std::int64_t out, std::int64_t kernel, std::int64_t stride);

  // Throws std::logic_error if the number of channels belongs to no layout.
  torch::Tensor forward(const torch::Tensor& pictures) const;

 private:
  torch::Tensor weight_;
  std::int64_t kernel_;
  std::int64_t stride_;
};

}  // namespace riffle

// The first convolution of a network, which takes pictures in any ViewLayout.
#pragma once

#include <cstdint>

#include <torch/nn/module.h>
#include <torch/types.h>

#include "riffle/model/init.h"

namespace riffle {

// The parameter is that of a plain convolution of 3 channels; the other layouts rearrange it, which
// gives the same numbers up to rounding.
class StemConv : public torch::nn::Module {
 public:
  StemConv(const Init& init, std::int64_t out, std::int64_t kernel, std::int64_t stride);

  // Throws std::logic_error for a number of channels that is no layout's.
  torch::Tensor forward(const torch::Tensor& pictures) const;

 private:
  torch::Tensor weight_;
  std::int64_t kernel_;
  std::int64_t stride_;
};

}  // namespace riffle

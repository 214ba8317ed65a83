// Initial weights as a pure function of (seed, name of the parameter): they depend neither on
// torch's generator nor on the order in which modules are constructed.
#pragma once

#include <cstdint>
#include <string>

#include <torch/types.h>

namespace riffle {

// Where in the network a module stands, so that its parameters know their full names.
class Init {
 public:
  explicit Init(std::uint64_t seed, std::string path = "") : seed_(seed), path_(std::move(path)) {}

  // Returns the place of the module `name` inside this one.
  Init at(const std::string& name) const { return Init(seed_, path_ + name + "."); }

  // Returns the weight of a convolution [out, in, height, width] before a ReLU: normal with
  // variance 2 / (out * height * width). Channels last.
  torch::Tensor kaiming_normal(const std::string& name, torch::IntArrayRef shape) const;

  // Returns normal numbers of this deviation.
  torch::Tensor normal(const std::string& name, torch::IntArrayRef shape, float deviation) const;

  // Returns what torch begins a linear layer with: uniform within 1 / sqrt(inputs), for its weight
  // and its bias.
  torch::Tensor linear_uniform(const std::string& name, torch::IntArrayRef shape,
                               std::int64_t inputs) const;

 private:
  std::uint64_t seed_;
  std::string path_;
};

}  // namespace riffle

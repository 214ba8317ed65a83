// For tests: labelled features drawn around one random centre a class.
#pragma once

#include <cstdint>
#include <string>

#include <ATen/core/Tensor.h>
#include <torch/types.h>

#include "riffle/base/random.h"

namespace riffle {

struct Clusters {
  at::Tensor features;  // [n, d] float32
  at::Tensor classes;   // [n] int64
};

// `noise` is the spread around centres that are about sqrt(dim) long. Two draws of one seed share
// their centres.
inline Clusters make_clusters(std::int64_t count, std::int64_t dim, std::int64_t class_count,
                              float noise, std::uint64_t seed, std::uint64_t draw) {
  Clusters clusters{torch::empty({count, dim}), torch::empty({count}, torch::kInt64)};
  for (std::int64_t i = 0; i < count; ++i) {
    Random own(seed, Purpose("test/sample"), draw << 32 | static_cast<std::uint64_t>(i));
    const std::uint64_t label = own.below(static_cast<std::uint64_t>(class_count));
    clusters.classes.data_ptr<std::int64_t>()[i] = static_cast<std::int64_t>(label);
    Random centre(seed, Purpose("test/centre"), label);
    for (std::int64_t j = 0; j < dim; ++j) {
      clusters.features.data_ptr<float>()[i * dim + j] = centre.normal() + noise * own.normal();
    }
  }
  return clusters;
}

}  // namespace riffle

// Where samples lie among one another by their features: a map, and neighbours.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include "riffle/run/saved_buffer.h"

namespace riffle {

struct MapPoint {
  // Row of the features.
  std::size_t sample = 0;
  // In [0, 1].
  double x = 0;
  double y = 0;
};

// Returns at most `count` rows of [n, dim], evenly spaced, at their first two principal components.
// Leaves out rows of zeros; none if fewer than three are left. The same for the same features.
std::vector<MapPoint> feature_map(const at::Tensor& features, std::size_t count);

struct Neighbours {
  std::size_t sample = 0;
  // The rows with the largest cosine to it, the nearest first.
  std::vector<std::size_t> nearest;
};

// Returns at most `count` rows, evenly spaced, each with its `each` nearest others. Leaves out rows
// of zeros.
std::vector<Neighbours> nearest_neighbours(const at::Tensor& features, std::size_t count,
                                           std::size_t each);

// Returns a map with the samples' pictures as an SVG element for a page; empty if there is none.
// `samples`: the place in samples() of each row of `features`.
std::string map_svg(SavedBuffer& buffer, const at::Tensor& features,
                    const std::vector<std::size_t>& samples, std::size_t count);

}  // namespace riffle

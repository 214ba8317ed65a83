// The nearest-neighbour probe: a picture gets the class for which its nearest training pictures
// vote.
#pragma once

#include <cstdint>
#include <string>

#include <ATen/core/Tensor.h>

namespace riffle {

struct KnnOptions {
  // Neighbours; all training pictures if there are fewer.
  std::int64_t k = 20;
  // A neighbour of cosine similarity s votes with exp(s / temperature).
  double temperature = 0.07;

  // Returns the same in words, with every figure.
  std::string text(std::int64_t train_count) const;
};

// Returns the class of each row of `val`. Features: [n, d] and [m, d] float on one device, of any
// length (cosine similarity); `classes`: [n] int64. Works in blocks: memory grows with n, not with
// n x m.
at::Tensor knn_classes(const at::Tensor& train, const at::Tensor& classes, std::int64_t class_count,
                       const at::Tensor& val, const KnnOptions& options);

}  // namespace riffle

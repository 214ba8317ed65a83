// The nearest-neighbour probe: a picture gets the class for which its nearest training pictures
// vote.
#pragma once

#include <cstdint>
#include <string>

#include <ATen/core/Tensor.h>

namespace riffle {

struct KnnOptions {
  std::int64_t k = 20;        // neighbours; all training pictures where there are fewer
  double temperature = 0.07;  // a neighbour of cosine similarity s votes with exp(s / temperature)

  // The same in words, with every figure.
  std::string text(std::int64_t train_count) const;
};

// The class of each row of `val`. Features: [n, d] and [m, d] float on one device, of any length
// (cosine similarity); `classes`: [n] int64. Works in blocks: memory grows with n, not with n x m.
at::Tensor knn_classes(const at::Tensor& train, const at::Tensor& classes, std::int64_t class_count,
                       const at::Tensor& val, const KnnOptions& options);

}  // namespace riffle

#include "riffle/eval/knn.h"

#include <algorithm>
#include <stdexcept>
#include <vector>

#include <torch/types.h>
#include <torch/utils.h>

#include "riffle/base/text.h"
#include "riffle/eval/embedding.h"
#include "riffle/tensors/unit_length.h"

namespace riffle {
namespace {

// Similarities of one block: 64 MiB.
constexpr std::int64_t kBlockValues = std::int64_t{1} << 24;

// Returns rows of unit length as columns. In blocks: beside the features of a large set, two copies
// would not fit.
at::Tensor unit_columns(const at::Tensor& rows) {
  constexpr std::int64_t kRows = 8192;
  const at::Tensor columns = torch::empty({rows.size(1), rows.size(0)}, rows.options());
  for (std::int64_t begin = 0; begin < rows.size(0);) {
    const std::int64_t left = rows.size(0) - begin;
    // The last block is not a small one: a GPU adds up the squares of few rows in another order.
    const std::int64_t count = left < 2 * kRows ? left : kRows;
    columns.narrow(1, begin, count).copy_(unit_length(rows.narrow(0, begin, count)).t());
    begin += count;
  }
  return columns;
}

}  // namespace

std::string KnnOptions::text(std::int64_t train_count) const {
  return cat("k-NN by cosine similarity, k ", std::min(k, train_count), ", temperature ",
             temperature);
}

at::Tensor knn_classes(const at::Tensor& train, const at::Tensor& classes, std::int64_t class_count,
                       const at::Tensor& val, const KnnOptions& options) {
  if (options.k < 1 || !(options.temperature > 0)) {
    throw std::logic_error("k-NN needs k of at least 1 and a positive temperature");
  }
  const torch::NoGradGuard no_gradient;
  const std::int64_t k = std::min(options.k, train.size(0));
  const at::Tensor keys = unit_columns(train);
  const at::Tensor labels = classes.to(train.device());
  const std::int64_t rows = std::clamp<std::int64_t>(kBlockValues / train.size(0), 1, 4096);

  std::vector<at::Tensor> voted;
  for (std::int64_t begin = 0; begin < val.size(0); begin += rows) {
    const at::Tensor queries =
        unit_length(val.narrow(0, begin, std::min(rows, val.size(0) - begin)));
    const auto [similarity, neighbours] = queries.mm(keys).topk(k, 1);
    // All weights of a row share a factor: with the nearest at 1, nothing overflows.
    const at::Tensor weights =
        ((similarity - similarity.narrow(1, 0, 1)) / options.temperature).exp();
    const at::Tensor votes = torch::zeros({queries.size(0), class_count}, weights.options());
    votes.scatter_add_(1, labels.index_select(0, neighbours.flatten()).view_as(neighbours),
                       weights);
    voted.push_back(votes.argmax(1));
  }
  return torch::cat(voted);
}

}  // namespace riffle

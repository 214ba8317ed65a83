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
  const at::Tensor keys = unit_length(train).t().contiguous();
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

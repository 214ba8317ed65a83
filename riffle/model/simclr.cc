#include "riffle/model/simclr.h"

#include <limits>

#include <torch/types.h>

#include "riffle/tensors/unit_length.h"

namespace riffle {

SimClr::SimClr(const ModelConfig& config, std::uint64_t seed)
    : Objective(config, seed), temperature_(config.temperature) {}

torch::Tensor SimClr::loss(const Batch& batch) {
  return nt_xent(of_all_ranks(batch.embeddings), temperature_);
}

torch::Tensor nt_xent(const torch::Tensor& embeddings, double temperature) {
  const torch::Tensor directions = unit_length(embeddings);
  const std::int64_t rows = directions.size(0);
  const torch::Tensor itself =
      torch::eye(rows, torch::dtype(torch::kBool).device(embeddings.device()));
  const torch::Tensor similar = directions.mm(directions.t()) / temperature;
  const torch::Tensor partners = (directions * directions.roll(rows / 2, 0)).sum(1) / temperature;
  constexpr double kNever = -std::numeric_limits<double>::infinity();
  return (similar.masked_fill(itself, kNever).logsumexp(1) - partners).mean();
}

}  // namespace riffle

#include "riffle/model/simsiam.h"

#include <torch/types.h>

#include "riffle/model/mlp.h"
#include "riffle/tensors/unit_length.h"

namespace riffle {

SimSiam::SimSiam(const ModelConfig& config, std::uint64_t seed) : Objective(config, seed) {
  const std::vector widths{feature_dim(), config.predictor_hidden, feature_dim()};
  predictor_ = register_module(
      "predictor", std::make_shared<Mlp>(Init(seed).at("predictor"), widths, Mlp::Ending::bias));
}

std::vector<torch::Tensor> SimSiam::predictor_parameters() { return predictor_->parameters(); }

torch::Tensor SimSiam::loss(const Batch& batch) {
  const torch::Tensor predictions =
      predictor_->forward(batch.embeddings.to(batch.views.scalar_type()), batch.pass);
  const std::int64_t rows = predictions.size(0);
  return (unit_length(predictions) * targets(batch).roll(rows / 2, 0)).sum() *
         (-1.0 / static_cast<double>(rows));
}

}  // namespace riffle

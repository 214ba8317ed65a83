#include "riffle/model/mlp.h"

#include <string>

#include <torch/types.h>

namespace riffle {
namespace {

constexpr std::size_t kStride = 3;  // linear, norm, ReLU

}  // namespace

Mlp::Mlp(const Init& init, const std::vector<std::int64_t>& widths, Ending ending) {
  const std::size_t layers = widths.size() - 1;
  for (std::size_t i = 0; i < layers; ++i) {
    const std::string name = std::to_string(kStride * i);
    const bool bias = i + 1 == layers && ending == Ending::bias;
    linears_.push_back(register_module(
        name, std::make_shared<Linear>(init.at(name), widths[i], widths[i + 1], bias)));
  }
  for (std::size_t i = 0; i < layers; ++i) {
    const bool last = i + 1 == layers;
    if (last && ending == Ending::bias) break;
    norms_.push_back(register_module(
        std::to_string(kStride * i + 1),
        std::make_shared<BatchNorm>(widths[i + 1], BatchNorm::Options{.affine = !last})));
  }
}

torch::Tensor Mlp::forward(const torch::Tensor& rows, Pass pass) const {
  return ending(before_ending(rows, pass), pass);
}

torch::Tensor Mlp::before_ending(const torch::Tensor& rows, Pass pass) const {
  torch::Tensor hidden = rows;
  for (std::size_t i = 0; i + 1 < linears_.size(); ++i) {
    hidden = norms_[i]->forward(linears_[i]->forward(hidden), pass, /*relu=*/true);
  }
  return linears_.back()->forward(hidden).to(torch::kFloat32);
}

torch::Tensor Mlp::ending(const torch::Tensor& outputs, Pass pass) const {
  if (norms_.size() < linears_.size()) return outputs;
  return norms_.back()->forward(outputs, pass, /*relu=*/false);
}

std::shared_ptr<Mlp> make_projector(const ModelConfig& config, std::int64_t inputs,
                                    const Init& init) {
  const std::int64_t hidden = config.projector_hidden == 0 ? inputs : config.projector_hidden;
  return std::make_shared<Mlp>(init, std::vector{inputs, hidden, hidden, config.projector_out},
                               Mlp::Ending::norm);
}

}  // namespace riffle

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
  torch::Tensor hidden = rows;
  for (std::size_t i = 0; i + 1 < linears_.size(); ++i) {
    hidden = norms_[i]->forward(linears_[i]->forward(hidden), pass, /*relu=*/true);
  }
  const torch::Tensor out = linears_.back()->forward(hidden).to(torch::kFloat32);
  return norms_.size() < linears_.size() ? out : norms_.back()->forward(out, pass, /*relu=*/false);
}

}  // namespace riffle

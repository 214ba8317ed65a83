#include "riffle/model/alignment.h"

#include <vector>

#include "riffle/augment/view_plan.h"
#include "riffle/model/mlp.h"
#include "riffle/model/moving_average.h"
#include "riffle/tensors/unit_length.h"

namespace riffle {
namespace {

// Both views of all samples but the first `fresh`.
torch::Tensor replayed(const torch::Tensor& of_views, std::int64_t fresh) {
  if (fresh == 0) return of_views;
  std::vector<torch::Tensor> rest;
  for (const torch::Tensor& view : of_views.chunk(kViews)) {
    rest.push_back(view.narrow(0, fresh, view.size(0) - fresh));
  }
  return torch::cat(rest);
}

}  // namespace

Alignment::Alignment(const ModelConfig& config, const Init& init,
                     std::shared_ptr<MovingAverage> target)
    : weight_(config.align_weight), ema_(config.align_ema) {
  const std::vector widths{config.projector_out, config.predictor_hidden, config.projector_out};
  head_ =
      register_module("head", std::make_shared<Mlp>(init.at("head"), widths, Mlp::Ending::bias));
  target_ = register_module("target", std::move(target));
}

torch::Tensor Alignment::loss(const torch::Tensor& views, const torch::Tensor& embeddings,
                              const Pass& pass, std::int64_t fresh) const {
  const torch::Tensor aligned =
      head_->forward(replayed(embeddings, fresh).to(views.scalar_type()), pass);
  const torch::Tensor kept = target_->embed(replayed(views, fresh), pass);
  return (unit_length(aligned) * unit_length(kept)).sum(1).mean() * -weight_;
}

void Alignment::follow() { target_->follow(ema_); }

}  // namespace riffle

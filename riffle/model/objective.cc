#include "riffle/model/objective.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <stdexcept>

#include <ATen/ATen.h>
#include <torch/autograd.h>
#include <torch/types.h>
#include <torch/utils.h>

#include "riffle/augment/view_plan.h"
#include "riffle/base/error.h"
#include "riffle/base/text.h"
#include "riffle/model/alignment.h"
#include "riffle/model/backbone.h"
#include "riffle/model/byol.h"
#include "riffle/model/encoder_weights.h"
#include "riffle/model/mlp.h"
#include "riffle/model/moving_average.h"
#include "riffle/model/simclr.h"
#include "riffle/model/simsiam.h"
#include "riffle/model/vicreg.h"
#include "riffle/model/visreg.h"
#include "riffle/model/weight_cast.h"
#include "riffle/tensors/unit_length.h"

namespace riffle {
namespace {

constexpr std::int64_t kAllGradients = std::numeric_limits<std::int64_t>::max();

template <typename Method>
std::shared_ptr<Objective> make(const ModelConfig& config, std::uint64_t seed) {
  return std::make_shared<Method>(config, seed);
}

struct KnownObjective {
  std::string name;
  std::shared_ptr<Objective> (*make)(const ModelConfig& config, std::uint64_t seed);
};

const std::vector<KnownObjective>& known_objectives() {
  static const std::vector<KnownObjective> kObjectives = {
      {"simsiam", make<SimSiam>}, {"simclr", make<SimClr>}, {"byol", make<Byol>},
      {"vicreg", make<VicReg>},   {"visreg", make<VisReg>},
  };
  return kObjectives;
}

std::shared_ptr<Objective> make_untrained(const ModelConfig& config, std::uint64_t seed) {
  for (const auto& known : known_objectives()) {
    if (known.name == config.objective) return known.make(config, seed);
  }
  throw Error(unknown_name("model.objective", config.objective, objective_names()));
}

// Rows of both views of all ranks. All ranks make the same loss of them, so the derivative of the
// sum of their losses is this rank's own, times their number.
class GatheredViews : public torch::autograd::Function<GatheredViews> {
 public:
  static torch::Tensor forward(torch::autograd::AutogradContext* context, const torch::Tensor& rows,
                               Ranks& ranks) {
    context->saved_data["rank"] = static_cast<std::int64_t>(ranks.rank());
    context->saved_data["ranks"] = static_cast<std::int64_t>(ranks.size());
    const torch::Tensor all = ranks.gather(rows);
    const std::int64_t dim = rows.size(1);
    return all.view({ranks.size(), kViews, -1, dim}).transpose(0, 1).reshape({-1, dim});
  }

  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* context,
                                                 torch::autograd::variable_list gradients) {
    const std::int64_t ranks = context->saved_data["ranks"].toInt();
    const std::int64_t dim = gradients[0].size(1);
    const torch::Tensor own = gradients[0]
                                  .reshape({kViews, ranks, -1, dim})
                                  .select(1, context->saved_data["rank"].toInt())
                                  .reshape({-1, dim});
    return {own * ranks, {}};
  }
};

void check_views(const torch::Tensor& views) {
  if (views.dim() != 4 || views.size(0) % kViews != 0) {
    throw std::logic_error(
        cat("views must be [2 * batch, channels, height, width], not ", views.sizes()));
  }
}

}  // namespace

Objective::Objective(const ModelConfig& config, std::uint64_t seed)
    : feature_dim_(config.projector_out),
      grow_every_(config.grow_every),
      sync_batch_norm_(config.sync_batch_norm),
      average_share_(config.average) {
  config.validate();
  const Init init(seed);
  encoder_ = register_module("encoder", make_backbone(config, init.at("encoder")));
  projector_ =
      register_module("projector", make_projector(config, encoder_dim(), init.at("projector")));
  set_grown(grow_every_ == 0 ? encoder_->blocks_to_grow() : 0);
  if (config.align_weight > 0) {
    alignment_ = register_module("align", std::make_shared<Alignment>(config, init.at("align"),
                                                                      make_moving_average(config)));
  }
  if (config.average > 0) {
    average_ =
        register_module("average", std::make_shared<MovingAverage>(config, encoder_, nullptr));
  }
}

std::int64_t Objective::encoder_dim() const { return encoder_->features(); }

std::shared_ptr<MovingAverage> Objective::make_moving_average(const ModelConfig& config) const {
  return std::make_shared<MovingAverage>(config, encoder_, projector_);
}

void Objective::set_grown(int blocks) {
  encoder_->set_grown(blocks);
  for (const auto& average : moving_averages(*this)) average->grow();
}

bool Objective::advance_to(std::int64_t update) {
  if (average_ && update > 0 && update % kAverageEvery == 0) {
    // Early on it keeps less, so that it does not drag the first weights along.
    const auto made = static_cast<double>(update);
    const double share = std::min(average_share_, (1.0 + made) / (10.0 + made));
    average_->follow(std::pow(share, kAverageEvery));
  }
  if (grow_every_ == 0) return false;
  const auto blocks =
      static_cast<int>(std::min<std::int64_t>(update / grow_every_, encoder_->blocks_to_grow()));
  if (blocks == encoder_->grown()) return false;
  set_grown(blocks);
  return true;
}

// The weights of convolutions and linear layers, but for blocks that sleep and for moving averages,
// unless they are of this type already.
std::vector<torch::Tensor> Objective::weights_to_cast(torch::ScalarType type) const {
  std::vector<torch::Tensor> weights;
  if (type == torch::kFloat32) return weights;
  for (const torch::Tensor& parameter : parameters()) {
    if (parameter.dim() > 1 && parameter.requires_grad()) weights.push_back(parameter);
  }
  return weights;
}

ObjectiveOutput Objective::forward(const torch::Tensor& views, std::int64_t fresh) {
  check_views(views);
  // Gradients that are exchanged while backward() runs must not all wait for the last.
  const WeightCast cast(weights_to_cast(views.scalar_type()), views.scalar_type(),
                        ranks_->on_gpu() ? kGradientsTogether : kAllGradients);
  std::vector<torch::Tensor> counters;
  const Pass pass{.training = true,
                  .views = kViews,
                  .counters = &counters,
                  .ranks = sync_batch_norm_ && !ranks_->alone() ? ranks_ : nullptr};
  // Both views of a batch pass together, batch norm keeping their statistics apart: convolutions
  // are quicker on one large batch than on two.
  const torch::Tensor projections = projector_->before_ending(encoder_->forward(views, pass), pass);
  const torch::Tensor embeddings = projector_->ending(projections, pass);
  const torch::Tensor fixed = embeddings.detach();
  const torch::Tensor targets = unit_length(fixed);
  torch::Tensor value = loss({views, projections, embeddings, targets, pass});
  if (alignment_) value = value + alignment_->loss(views, embeddings, pass, fresh);

  const torch::NoGradGuard no_gradient;
  at::_foreach_add_(counters, kViews);
  const auto halves = fixed.chunk(kViews);
  return {.loss = value,
          .features = unit_length(halves[0] + halves[1]),
          .std = spread(targets) * std::sqrt(static_cast<double>(feature_dim_))};
}

// Mean over channels of the standard deviation over the samples of all ranks.
torch::Tensor Objective::spread(const torch::Tensor& directions) const {
  if (ranks_->alone()) return directions.std(0, /*unbiased=*/false).mean();
  const double n = static_cast<double>(directions.size(0)) * ranks_->size();
  const torch::Tensor mean = ranks_->sum(directions.sum(0)) / n;
  return (ranks_->sum((directions - mean).square().sum(0)) / n).sqrt().mean();
}

torch::Tensor Objective::of_all_ranks(const torch::Tensor& rows) const {
  return ranks_->alone() ? rows : GatheredViews::apply(rows, *ranks_);
}

void Objective::after_step() {
  if (alignment_) alignment_->follow();
  follow();
}

torch::Tensor Objective::features(const torch::Tensor& views) {
  const torch::NoGradGuard no_gradient;
  const WeightCast cast(weights_to_cast(views.scalar_type()), views.scalar_type());
  const Pass pass{.training = false};
  return unit_length(projector_->forward(encoder_->forward(views, pass), pass));
}

torch::Tensor Objective::encode(const torch::Tensor& pictures) {
  if (average_) return average_->encode(pictures);
  const torch::NoGradGuard no_gradient;
  return encoder_->forward(pictures, {.training = false});
}

std::vector<std::string> objective_names() {
  std::vector<std::string> names;
  for (const auto& known : known_objectives()) names.push_back(known.name);
  return names;
}

std::shared_ptr<Objective> make_objective(const ModelConfig& config, std::uint64_t seed) {
  auto objective = make_untrained(config, seed);
  if (config.init.empty()) return objective;
  try {
    load_initial(*objective, config, config.init);
  } catch (const Error& error) {
    throw Error(cat("model.init=", config.init, ": ", error.what()), error.kind());
  }
  for (const auto& average : moving_averages(*objective)) average->begin();
  return objective;
}

}  // namespace riffle

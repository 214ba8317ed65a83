#include "riffle/train/plain_updater.h"

#include <cmath>
#include <numeric>

#include <torch/types.h>

#include "riffle/tensors/named_tensors.h"

namespace riffle {
namespace {

// Returns the same pictures in host memory, where views are made.
Pictures in_host_memory(const Pictures& pictures) {
  if (pictures.tensor.is_cpu()) return pictures;
  auto rows = pictures.indices;
  rows.insert(rows.end(), pictures.second.begin(), pictures.second.end());
  const auto where = integers_tensor(rows).to(pictures.tensor.device());
  Pictures host = pictures;
  host.tensor = pictures.tensor.index_select(0, where).cpu();
  std::iota(host.indices.begin(), host.indices.end(), 0);
  std::iota(host.second.begin(), host.second.end(), std::ssize(host.indices));
  return host;
}

}  // namespace

PlainUpdater::PlainUpdater(const UpdaterConfig& config, std::shared_ptr<Objective> objective,
                           at::Device device, Ranks& ranks)
    : device_(device),
      ranks_(ranks),
      part_(config.train, ranks.rank(), ranks.size()),
      pool_(static_cast<int>(config.train.threads)),
      training_views_(config.augment, config.seed, pool_),
      arrival_views_(no_augmentation(config.augment.size), /*seed=*/0, pool_),
      objective_(std::move(objective)),
      optimizer_(*objective_, objective_->predictor_parameters(), config.train),
      gradients_(*objective_, ranks) {}

at::Tensor PlainUpdater::update(const Pictures& pictures, std::int64_t step, double lr,
                                double predictor_lr) {
  objective_->advance_to(step);
  const Pictures host = in_host_memory(pictures);
  const torch::Tensor views = training_views_(
      host.tensor, host.indices, static_cast<std::uint64_t>(step), host.second, part_.places);
  const auto output = objective_->forward(views.to(device_), part_.fresh);
  // The same on all ranks, so that all go on or none does.
  outcome_ = {step, ranks_.sum(output.loss.detach()).item<double>() / ranks_.size(),
              output.std.item<double>()};
  if (std::isfinite(outcome_.loss)) {
    gradients_.begin();
    output.loss.backward();
    gradients_.finish();
    optimizer_.step(lr, predictor_lr);
    objective_->after_step();
  }
  return output.features;
}

at::Tensor PlainUpdater::arrival_features(const Pictures& pictures) {
  const Pictures host = in_host_memory(pictures);
  const torch::Tensor views = arrival_views_.one_view(host.tensor, host.indices, /*step=*/0);
  return objective_->features(views.to(device_));
}

}  // namespace riffle

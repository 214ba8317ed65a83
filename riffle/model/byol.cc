#include "riffle/model/byol.h"

#include <torch/types.h>

#include "riffle/model/moving_average.h"
#include "riffle/tensors/unit_length.h"

namespace riffle {

Byol::Byol(const ModelConfig& config, std::uint64_t seed)
    : SimSiam(config, seed), ema_(config.ema) {
  target_ = register_module("target", make_moving_average(config));
}

void Byol::follow() { target_->follow(ema_); }

torch::Tensor Byol::targets(const Batch& batch) {
  return unit_length(target_->embed(batch.views, batch.pass));
}

}  // namespace riffle

#include "riffle/train/updater.h"

#include <vector>

#include <ATen/ATen.h>

#include "riffle/base/error.h"
#include "riffle/base/text.h"
#include "riffle/train/plain_updater.h"
#if RIFFLE_CUDA
#include "riffle/train/updater_gpu.h"
#endif

namespace riffle {

std::unique_ptr<Updater> make_updater(const UpdaterConfig& config,
                                      std::shared_ptr<Objective> objective, Ranks& ranks) {
  const at::Device device = open_device(config.device);
  if (device.is_cpu() && config.train.precision == Precision::bfloat16) {
    throw Error("train.precision bfloat16 needs --device cuda; on the CPU it is float32");
  }
  if (!objective) objective = make_objective(config.model, config.seed);
  if (config.train.fixed_predictor_lr && objective->predictor_parameters().empty()) {
    throw Error(
        cat("train.fixed_predictor_lr=true needs a method with a predictor, simsiam or byol; "
            "model.objective=",
            config.model.objective, " has none"));
  }
  objective->to(device);
  objective->share(ranks);
#if RIFFLE_CUDA
  const bool recorded = UpdaterGpu::can(config, device, ranks);
  // All ranks or none.
  if (!ranks.any(!recorded)) {
    return std::make_unique<UpdaterGpu>(config, std::move(objective), ranks);
  }
#endif
  // On the CPU it was refused above.
  if (config.train.precision == Precision::bfloat16) {
    throw Error(cat("train.precision=bfloat16 does not work ",
                    ranks.alone() || ranks.on_gpu() ? "with pictures this large"
                                                    : "where ranks exchange through host memory",
                    "; use best, which is float32 here"));
  }
  return std::make_unique<PlainUpdater>(config, std::move(objective), device, ranks);
}

}  // namespace riffle

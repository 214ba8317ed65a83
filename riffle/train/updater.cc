#include "riffle/train/updater.h"

#include <vector>

#include <torch/torch.h>

#include "riffle/base/error.h"
#include "riffle/base/text.h"
#include "riffle/train/plain_updater.h"

namespace riffle {

at::Device open_device(const std::string& name) {
  if (name == "cpu") return at::kCPU;
  if (name == "cuda") {
    if (torch::cuda::is_available()) return at::kCUDA;
    throw Error("device cuda: this build or machine has no CUDA device; use cpu");
  }
  throw Error(unknown_name("device", name, std::vector<std::string>{"cpu", "cuda"}));
}

std::unique_ptr<Updater> make_updater(const UpdaterConfig& config) {
  return std::make_unique<PlainUpdater>(config, open_device(config.device));
}

}  // namespace riffle

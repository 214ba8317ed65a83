#include "riffle/train/device.h"

#include <cstdlib>
#include <mutex>
#include <optional>
#include <vector>

#include <ATen/ATen.h>
#include <torch/cuda.h>

#include "riffle/base/error.h"
#include "riffle/base/text.h"
#if RIFFLE_CUDA
#include "riffle/dist/ranks_gpu.h"
#endif

namespace riffle {
namespace {

constexpr const char* kVisible = "CUDA_VISIBLE_DEVICES";
constexpr std::string_view kNumbered = "cuda:";

void use_gpu(std::int64_t index) {
  static std::mutex mutex;
  static std::optional<std::int64_t> used;
  const std::lock_guard lock(mutex);
  if (used == index) return;
  if (used) throw Error(cat("this process uses cuda:", *used, " already; it can use one GPU"));
  const char* visible = std::getenv(kVisible);
  const std::string one = visible_gpu(visible == nullptr ? "" : visible, index);
  ::setenv(kVisible, one.c_str(), /*overwrite=*/1);
  used = index;
}

}  // namespace

std::string visible_gpu(const std::string& visible, std::int64_t index) {
  if (visible.empty()) return std::to_string(index);
  const auto all = split(visible, ',');
  if (index < std::ssize(all)) return all[static_cast<std::size_t>(index)];
  throw Error(cat("device cuda:", index, ": ", kVisible, "=", visible, " shows only ", all.size(),
                  all.size() == 1 ? " GPU" : " GPUs"));
}

at::Device open_device(const std::string& given) {
  // Only such a name makes this process join its ranks.
  const std::string name =
      given.find('{') == std::string::npos ? given : ranks_of_process().fill_in(given);
  if (name == "cpu") return at::kCPU;
  const bool numbered = name.starts_with(kNumbered);
  if (!numbered && name != "cuda" && name != "gpu") {
    throw Error(unknown_name("device", name, std::vector<std::string>{"cpu", "cuda", "gpu"}));
  }
  if (numbered) {
    const auto index = parse_integer(name.substr(kNumbered.size()), "the number of a GPU");
    if (index < 0) throw Error(cat("device ", name, ": GPUs are numbered from 0"));
    use_gpu(index);
  }
  if (torch::cuda::is_available()) return at::kCUDA;
  throw Error(cat("device ", name, ": this build or machine has no ",
                  numbered ? "such CUDA device" : "CUDA device", "; use cpu"));
}

std::unique_ptr<Ranks> ranks_on([[maybe_unused]] at::Device device, [[maybe_unused]] Ranks& ranks) {
#if RIFFLE_CUDA
  if (device.is_cuda()) return ranks_on_gpu(ranks);
#endif
  return nullptr;
}

}  // namespace riffle

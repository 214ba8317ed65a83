#include "riffle/buffer/memory_plan.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <fstream>
#include <limits>
#include <optional>
#include <sstream>

#include <ATen/ATen.h>

#ifdef RIFFLE_CUDA
#include <c10/cuda/CUDAGuard.h>
#include <cuda_runtime_api.h>
#endif

#include "riffle/base/error.h"
#include "riffle/base/text.h"
#include "riffle/buffer/jpeg_store.h"
#include "riffle/buffer/policy.h"
#include "riffle/buffer/replay_buffer.h"

namespace riffle {
namespace {

constexpr auto kUnknown = std::numeric_limits<std::uint64_t>::max();

// Far more than fits anywhere, and small enough that byte counts cannot overflow.
constexpr std::int64_t kMostSamples = std::int64_t{1} << 30;

// Lists, hash tables, the policy's records and a key of usual length, for each slot, beside
// SlotInfo.
constexpr std::uint64_t kBookkeeping = 256;

std::uint64_t picture_bytes(const BufferConfig& config, int picture_size) {
  if (config.storage == Storage::jpeg) {
    return static_cast<std::uint64_t>(JpegStore::cell_bytes(picture_size)) + 8;
  }
  const auto side = static_cast<std::uint64_t>(picture_size);
  return side * side * 3;
}

MemoryPlan plan_samples(const BufferConfig& config, std::int64_t capacity, std::int64_t batch,
                        int picture_size, std::int64_t feature_dim, at::Device device) {
  const auto slots = static_cast<std::uint64_t>(capacity + batch);
  MemoryPlan plan;
  plan.capacity = capacity;
  plan.pictures = slots * static_cast<std::uint64_t>(config.pictures_a_sample()) *
                  picture_bytes(config, picture_size);
  plan.records = slots * (sizeof(SlotInfo) + kBookkeeping);
  plan.pictures_on_device = config.memory == BufferMemory::gpu;
  if (const auto memory = policy_kind(config.policy).memory) {
    const auto kept = memory({config, capacity + batch, feature_dim, /*seed=*/0, device});
    plan.features = kept.features;
    plan.index = kept.index;
    plan.features_on_device = device.is_cuda();
  }
  return plan;
}

std::optional<std::uint64_t> number_after(const std::string& path, const std::string& key) {
  std::ifstream file(path);
  std::string line;
  while (std::getline(file, line)) {
    std::istringstream words(line);
    std::string word;
    std::uint64_t number = 0;
    if (words >> word && word == key && words >> number) return number;
  }
  return std::nullopt;
}

std::optional<std::uint64_t> number_in(const std::string& path) {
  std::ifstream file(path);
  std::uint64_t number = 0;
  if (file >> number) return number;
  return std::nullopt;
}

// What the control group of this process still allows. File pages count as used but are given up
// when needed, except those of files that are kept in memory alone.
std::uint64_t container_memory() {
  const std::string group = "/sys/fs/cgroup/";
  const auto limit = number_in(group + "memory.max");
  const auto used = number_in(group + "memory.current");
  if (!limit || !used) return kUnknown;
  const auto file = number_after(group + "memory.stat", "file").value_or(0);
  const auto in_memory = number_after(group + "memory.stat", "shmem").value_or(0);
  const auto given_up = file - std::min(file, in_memory);
  const auto held = *used - std::min(*used, given_up);
  return *limit - std::min(*limit, held);
}

std::uint64_t host_memory() {
  const auto kib = number_after("/proc/meminfo", "MemAvailable:");
  return std::min(kib ? *kib * 1024 : kUnknown, container_memory());
}

std::uint64_t device_memory([[maybe_unused]] at::Device device) {
#ifdef RIFFLE_CUDA
  if (device.is_cuda()) {
    const c10::cuda::CUDAGuard guard(device);
    std::size_t free = 0;
    std::size_t total = 0;
    if (cudaMemGetInfo(&free, &total) == cudaSuccess) return free;
  }
#endif
  return kUnknown;
}

void require_fits(const MemoryPlan& plan, const std::string& where, std::uint64_t needed,
                  std::uint64_t available) {
  if (needed <= available) return;
  throw Error(cat("a buffer of ", plan.capacity, " samples needs ", bytes_text(needed), " of ",
                  where, " memory (", needed, " bytes), but ", bytes_text(available),
                  " is available (", available, " bytes); in all: pictures ",
                  bytes_text(plan.pictures), ", features ", bytes_text(plan.features), ", index ",
                  bytes_text(plan.index), ", records ", bytes_text(plan.records),
                  "; lower buffer.capacity or use buffer.storage=jpeg"));
}

}  // namespace

Capacity parse_capacity(const std::string& text) {
  // In lower case. Nobody means samples by "8G", nor bytes by "64k"; "1M" could be either.
  static constexpr std::array<std::pair<std::string_view, double>, 10> kUnits = {{{"kib", 0x1p10},
                                                                                  {"mib", 0x1p20},
                                                                                  {"gib", 0x1p30},
                                                                                  {"tib", 0x1p40},
                                                                                  {"kb", 1e3},
                                                                                  {"mb", 1e6},
                                                                                  {"gb", 1e9},
                                                                                  {"tb", 1e12},
                                                                                  {"g", 0x1p30},
                                                                                  {"t", 0x1p40}}};
  const auto bad = [&text] {
    return Error(
        cat("buffer.capacity must be a number of samples (65536, 64k) or of bytes (8GiB, 500MB)",
            ", not '", text, "'"));
  };
  std::string lower = text;
  std::ranges::transform(lower, lower.begin(),
                         [](unsigned char letter) { return std::tolower(letter); });
  const auto before = [&lower](std::string_view unit) {
    std::string_view number(lower);
    number.remove_suffix(unit.size());
    while (number.ends_with(' ')) number.remove_suffix(1);
    return number;
  };
  Capacity capacity;
  try {
    for (const auto& [unit, factor] : kUnits) {
      if (!lower.ends_with(unit)) continue;
      const auto number = before(unit);
      const double bytes = parse_number(number, "buffer.capacity") * factor;
      if (!(bytes >= 1 && bytes < 0x1p62)) throw bad();
      capacity.bytes = static_cast<std::uint64_t>(bytes);
      return capacity;
    }
    constexpr std::int64_t kThousand = 1024;
    const bool thousands = lower.ends_with('k');
    const auto number = parse_integer(before(thousands ? "k" : ""), "buffer.capacity");
    if (number > kMostSamples) throw bad();
    capacity.samples = thousands ? kThousand * number : number;
  } catch (const Error&) {
    throw bad();
  }
  if (capacity.samples < 1 || capacity.samples > kMostSamples) throw bad();
  return capacity;
}

std::uint64_t MemoryPlan::on_device() const {
  return (pictures_on_device ? pictures : 0) + (features_on_device ? features + index : 0);
}

MemoryPlan MemoryPlan::share_of(const Ranks& ranks) const {
  MemoryPlan share = *this;
  share.pictures /= static_cast<std::uint64_t>(ranks.size());
  return share;
}

MemoryPlan plan_memory(const BufferConfig& config, std::int64_t batch, int picture_size,
                       std::int64_t feature_dim, at::Device device) {
  if (config.memory == BufferMemory::gpu && !device.is_cuda()) {
    throw Error("buffer.memory must be host when the network is not on a GPU");
  }
  const auto plan_for = [&](std::int64_t samples) {
    return plan_samples(config, samples, batch, picture_size, feature_dim, device);
  };
  if (config.is_none()) return plan_for(batch);
  const auto asked = parse_capacity(config.capacity);
  if (asked.samples > 0) {
    if (asked.samples < batch) {
      throw Error(cat("buffer.capacity must be at least one batch of ", batch, " samples, but is ",
                      asked.samples));
    }
    return plan_for(asked.samples);
  }
  // The most samples that fit: the need grows steadily with their number.
  if (plan_for(batch).total() > asked.bytes) {
    throw Error(cat("buffer.capacity=", config.capacity,
                    " is too little: the smallest buffer, one ", "batch of ", batch,
                    " samples, needs ", bytes_text(plan_for(batch).total()),
                    " with room for the next one"));
  }
  std::int64_t fits = batch;
  std::int64_t too_many = kMostSamples;
  while (too_many - fits > 1) {
    const auto middle = fits + (too_many - fits) / 2;
    (plan_for(middle).total() <= asked.bytes ? fits : too_many) = middle;
  }
  return plan_for(fits);
}

AvailableMemory available_memory(at::Device device) {
  return {host_memory(), device_memory(device)};
}

BufferMemory choose_memory(const BufferConfig& config, std::int64_t batch, int picture_size,
                           std::int64_t feature_dim, at::Device device,
                           const AvailableMemory& available) {
  if (config.memory != BufferMemory::best) return config.memory;
  if (!device.is_cuda() || config.storage == Storage::jpeg) return BufferMemory::host;
  BufferConfig on_gpu = config;
  on_gpu.memory = BufferMemory::gpu;
  const auto plan = plan_memory(on_gpu, batch, picture_size, feature_dim, device);
  return plan.on_device() <= available.device / 2 ? BufferMemory::gpu : BufferMemory::host;
}

void require_fits(const MemoryPlan& plan, const AvailableMemory& available) {
  require_fits(plan, "host", plan.on_host(), available.host);
  require_fits(plan, "GPU", plan.on_device(), available.device);
}

}  // namespace riffle

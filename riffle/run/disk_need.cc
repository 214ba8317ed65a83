#include "riffle/run/disk_need.h"

#include <algorithm>
#include <filesystem>

#include "riffle/base/log.h"
#include "riffle/base/text.h"
#include "riffle/buffer/memory_plan.h"
#include "riffle/train/device.h"

namespace riffle {
namespace {

// Returns how many checkpoints there are at the same time: those kept, or all that a short run
// makes, and the one that is being written.
std::int64_t most_checkpoints(const Config& config) {
  const CheckpointConfig& checkpoint = config.checkpoint;
  const std::int64_t updates = config.learner.train.max_updates;
  if (checkpoint.every == 0) return 2;
  if (updates == 0) return checkpoint.keep + 1;
  // One at the end of the filling and one at the end of the run beside those on the way.
  return std::min(checkpoint.keep, updates / checkpoint.every + 2) + 1;
}

}  // namespace

std::uint64_t checkpoint_bytes(const Config& config, Learner& learner) {
  constexpr std::uint64_t kHeaderBytes = 128;  // name, shape and place of a tensor
  std::uint64_t network = 0;
  // Every parameter has its momentum.
  for (const auto& parameter : learner.objective().parameters()) {
    network += 2 * (parameter.nbytes() + kHeaderBytes);
  }
  for (const auto& statistic : learner.objective().buffers()) {
    network += statistic.nbytes() + kHeaderBytes;
  }
  BufferConfig buffer = config.learner.buffer_config();
  if (!buffer.is_none()) buffer.capacity = std::to_string(learner.buffer().capacity());
  buffer.memory = BufferMemory::host;
  const MemoryPlan plan =
      plan_memory(buffer, learner.buffer().batch(), static_cast<int>(config.learner.stored_size()),
                  learner.objective().feature_dim(), open_device(config.learner.device));
  const std::uint64_t state = network + plan.features + plan.records;
  // Without checkpoints on the way the log is written once, at the end.
  const std::uint64_t logs = config.checkpoint.every > 0 ? 2 : 1;
  return logs * plan.pictures + static_cast<std::uint64_t>(most_checkpoints(config)) * state;
}

void tell_disk_need(const RunFolder& folder, const Config& config, Learner& learner) {
  const std::uint64_t needed = checkpoint_bytes(config, learner);
  const std::string need = cat("checkpoints take up to about ", bytes_text(needed), " of disk");
  std::error_code unknown;
  const auto space = std::filesystem::space(folder.path(), unknown);
  if (unknown || space.available >= needed) {
    log_info(need);
  } else {
    log_warning(cat(need, ", but ", bytes_text(space.available), " are free in ",
                    folder.path().string(),
                    "; a smaller --capacity, buffer.storage=jpeg or --keep 1 needs less"));
  }
}

}  // namespace riffle

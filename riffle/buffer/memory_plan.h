// How much memory a replay buffer will take, worked out before any is taken.
#pragma once

#include <cstdint>
#include <string>

#include <c10/core/Device.h>

#include "riffle/buffer/buffer_config.h"
#include "riffle/dist/ranks.h"

namespace riffle {

// A capacity as users write it: a number of samples, or a number of bytes for the whole buffer. The
// other one is 0.
struct Capacity {
  std::int64_t samples = 0;
  std::uint64_t bytes = 0;
};

// Parses samples, "65536" or "64k", or bytes, "8GiB", "1.5 GiB", "8G" or "500MB" (k, KiB, MiB, GiB,
// G, TiB, T count by 1024, KB, MB, GB, TB by 1000; upper and lower case are the same). Throws Error
// if the text is something else.
Capacity parse_capacity(const std::string& text);

struct MemoryPlan {
  std::int64_t capacity = 0;  // samples kept
  // Bytes, for `capacity` samples and one arriving batch.
  std::uint64_t pictures = 0;
  std::uint64_t features = 0;
  std::uint64_t index = 0;    // the nearest-neighbour index beside the features
  std::uint64_t records = 0;  // what is known of each sample; always host memory
  bool pictures_on_device = false;
  bool features_on_device = false;  // and the index

  std::uint64_t total() const { return pictures + features + index + records; }
  std::uint64_t on_device() const;
  std::uint64_t on_host() const { return total() - on_device(); }
  // Returns what one of several ranks takes: pictures are divided, the rest each has for itself.
  MemoryPlan share_of(const Ranks& ranks) const;
};

// Returns what a buffer of this configuration takes. With policy none the capacity is one batch,
// whatever the configuration says. For `device` see ReplayBuffer. Throws Error if the capacity is
// not a number of samples or bytes, or is less than one batch.
MemoryPlan plan_memory(const BufferConfig& config, std::int64_t batch, int picture_size,
                       std::int64_t feature_dim, at::Device device);

struct AvailableMemory {
  std::uint64_t host = 0;
  std::uint64_t device = 0;
};

// Returns what can be taken now, by the operating system, the limit of a container and the GPU
// driver. A figure that is not known is the largest possible one.
AvailableMemory available_memory(at::Device device);

// Returns where a buffer keeps its pictures: what the configuration says. `best` means the GPU's
// memory if the network is there and the buffer takes at most half of what is available, so that
// the network has room; otherwise the host's.
BufferMemory choose_memory(const BufferConfig& config, std::int64_t batch, int picture_size,
                           std::int64_t feature_dim, at::Device device,
                           const AvailableMemory& available);

// Throws Error, with the bytes needed and available, if the plan does not fit.
void require_fits(const MemoryPlan& plan, const AvailableMemory& available);

}  // namespace riffle

#include "riffle/image/decoding_memory.h"

#include <algorithm>
#include <condition_variable>
#include <mutex>
#include <thread>

namespace riffle {
namespace {

struct Held {
  std::mutex mutex;
  std::condition_variable released;
  std::uint64_t bytes = 0;
};

Held& held() {
  static Held instance;
  return instance;
}

}  // namespace

std::uint64_t DecodingMemory::most() {
  constexpr std::uint64_t kMiB = 1 << 20;
  static const std::uint64_t bytes =
      std::max<std::uint64_t>(512, 64 * std::thread::hardware_concurrency()) * kMiB;
  return bytes;
}

DecodingMemory::DecodingMemory(std::uint64_t bytes) : bytes_(bytes) {
  const std::uint64_t limit = most();
  Held& all = held();
  std::unique_lock lock(all.mutex);
  all.released.wait(
      lock, [&] { return all.bytes == 0 || (bytes <= limit && all.bytes <= limit - bytes); });
  all.bytes += bytes;
}

DecodingMemory::~DecodingMemory() {
  Held& all = held();
  {
    const std::lock_guard lock(all.mutex);
    all.bytes -= bytes_;
  }
  all.released.notify_all();
}

}  // namespace riffle

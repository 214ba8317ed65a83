#include "riffle/base/file_faults.h"

#include <atomic>
#include <mutex>
#include <shared_mutex>

namespace riffle {
namespace {

std::atomic<bool> active{false};
std::shared_mutex mutex;
FileFaults::Decide current;

}  // namespace

FileFaults::FileFaults(Decide decide) {
  const std::lock_guard lock(mutex);
  current = std::move(decide);
  active = true;
}

FileFaults::~FileFaults() {
  const std::lock_guard lock(mutex);
  active = false;
  current = nullptr;
}

FileFault FileFaults::decide(FileStep step, const std::filesystem::path& path) {
  if (!active) return {};
  const std::shared_lock lock(mutex);
  return current ? current(step, path) : FileFault{};
}

}  // namespace riffle

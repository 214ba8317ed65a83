#include "riffle/base/file_faults.h"

#include <atomic>
#include <mutex>

namespace riffle {
namespace {

std::atomic<bool> active{false};
std::mutex mutex;
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
  const std::lock_guard lock(mutex);
  return current ? current(step, path) : FileFault{};
}

}  // namespace riffle

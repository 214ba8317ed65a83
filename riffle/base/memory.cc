#include "riffle/base/memory.h"

#include <cstdlib>

#include <malloc.h>

namespace riffle {

void keep_freed_memory() {
  constexpr int kNever = 1 << 30;
  constexpr int kMaxInOldVersions = 32 << 20;
  if (mallopt(M_MMAP_THRESHOLD, kNever) == 0) mallopt(M_MMAP_THRESHOLD, kMaxInOldVersions);
  mallopt(M_TRIM_THRESHOLD, kNever);
}

void let_gpu_memory_grow() {
  setenv("PYTORCH_CUDA_ALLOC_CONF", "expandable_segments:True", /*overwrite=*/0);
}

}  // namespace riffle

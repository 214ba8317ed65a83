#include "riffle/base/memory.h"

#include <malloc.h>

namespace riffle {

void keep_freed_memory() {
  constexpr int kNever = 1 << 30;
  mallopt(M_MMAP_THRESHOLD, kNever);
  mallopt(M_TRIM_THRESHOLD, kNever);
}

}  // namespace riffle

#include "riffle/tensors/out_of_memory.h"

#include <new>
#include <string_view>

#include <c10/util/Exception.h>

namespace riffle {

bool is_out_of_memory(const std::exception& error) {
  if (dynamic_cast<const std::bad_alloc*>(&error) != nullptr) return true;
  if (dynamic_cast<const c10::OutOfMemoryError*>(&error) != nullptr) return true;
  // On the CPU, LibTorch has no type for it.
  const auto* failed = dynamic_cast<const c10::Error*>(&error);
  return failed != nullptr &&
         std::string_view(failed->what_without_backtrace()).find("can't allocate memory") !=
             std::string_view::npos;
}

}  // namespace riffle

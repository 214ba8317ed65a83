// Tells a lack of memory from everything else that can go wrong.
#pragma once

#include <exception>

namespace riffle {

// Returns whether the exception says that memory could not be allocated, by riffle or by LibTorch.
// Then no file is to blame for what was not read.
bool is_out_of_memory(const std::exception& error);

}  // namespace riffle

// The libraries that this room was built with, for `riffle --version`.
#pragma once

#include <vector>

#include "riffle/base/library.h"

namespace riffle {

std::vector<Library> dist_libraries();

}  // namespace riffle

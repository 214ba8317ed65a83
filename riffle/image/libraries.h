// The libraries behind this room, for `riffle --version`.
#pragma once

#include "riffle/base/library.h"

namespace riffle {

std::vector<Library> image_libraries();

}  // namespace riffle

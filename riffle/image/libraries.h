// The libraries this room uses, for `riffle --version`.
#pragma once

#include "riffle/base/library.h"

namespace riffle {

std::vector<Library> image_libraries();

}  // namespace riffle

// The libraries that the sources use, built in or not, for `riffle --version`.
#pragma once

#include "riffle/base/library.h"

namespace riffle {

std::vector<Library> stream_libraries();

}  // namespace riffle

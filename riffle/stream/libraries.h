// The libraries behind the sources, built in or not, for `riffle --version`.
#pragma once

#include "riffle/base/library.h"

namespace riffle {

std::vector<Library> stream_libraries();

}  // namespace riffle

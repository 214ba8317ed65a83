// What `riffle --version` prints: the program, and the libraries built in with their versions.
#pragma once

#include <string>

namespace riffle {

std::string version_text();

}  // namespace riffle

// A library that riffle was built with, or without: for `riffle --version`.
#pragma once

#include <string>
#include <vector>

namespace riffle {

struct Library {
  std::string name;
  std::string version;  // empty: riffle was built without it
  std::string gives;    // what is missing then
};

// Those behind this room; image and stream have their own.
std::vector<Library> base_libraries();

}  // namespace riffle

// A library that riffle was built with, or without: for `riffle --version`.
#pragma once

#include <string>
#include <vector>

namespace riffle {

struct Library {
  std::string name;
  std::string version;  // empty: riffle was built without it
  std::string gives;    // what riffle cannot do without it
};

// Returns the libraries this room uses; image and stream list their own.
std::vector<Library> base_libraries();

}  // namespace riffle

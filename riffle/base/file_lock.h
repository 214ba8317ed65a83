// A lock that one process at a time can hold, and that ends with it however it ends.
#pragma once

#include <filesystem>

#include "riffle/base/file.h"

namespace riffle {

class FileLock {
 public:
  // Makes the file when it is not there. Throws Error, naming `what` and the process that has it,
  // when the lock is taken.
  FileLock(const std::filesystem::path& path, const std::string& what);

 private:
  Descriptor file_;
};

}  // namespace riffle

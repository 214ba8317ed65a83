// A lock that one process at a time can hold, and that ends with it however it ends.
#pragma once

#include <filesystem>

#include "riffle/base/file.h"

namespace riffle {

enum class IfTaken { refuse, wait };

class FileLock {
 public:
  // Makes the file when it is not there. When the lock is taken, waits, or throws Error naming
  // `what` and the process that has it.
  FileLock(const std::filesystem::path& path, const std::string& what,
           IfTaken if_taken = IfTaken::refuse);

 private:
  Descriptor file_;
};

}  // namespace riffle

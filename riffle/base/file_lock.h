// A lock that one process at a time can hold, released when the process ends, however it ends.
#pragma once

#include <filesystem>

#include "riffle/base/file.h"

namespace riffle {

enum class IfTaken { refuse, wait };

class FileLock {
 public:
  // Creates the file if it is missing. If the lock is taken, waits, or throws Error naming `what`
  // and the process that holds it.
  FileLock(const std::filesystem::path& path, const std::string& what,
           IfTaken if_taken = IfTaken::refuse);

 private:
  Descriptor file_;
};

}  // namespace riffle

// A lock that one process at a time can hold, released when the process ends, however it ends.
#pragma once

#include <filesystem>

#include "riffle/base/error.h"
#include "riffle/base/file.h"

namespace riffle {

// The lock was held, and its file is no longer there.
class LostLock : public Error {
  using Error::Error;
};

enum class IfTaken {
  refuse,
  wait,
  join,  // the holder works with this process: only require_in_place() is of use
};

class FileLock {
 public:
  // Creates the file if it is missing. If the lock is taken, waits, or throws Error naming `what`
  // and the process that holds it. With `join` the file must be there, and nothing is taken. Throws
  // Error if a link is in the file's place.
  FileLock(const std::filesystem::path& path, const std::string& what,
           IfTaken if_taken = IfTaken::refuse);

  // Throws LostLock, naming `what`, unless the file that is locked is the one under the path: if it
  // or its folder was moved or removed, another process may hold what is there now.
  void require_in_place() const;

 private:
  bool is_in_place() const;

  std::string what_;
  Descriptor file_;
};

}  // namespace riffle

#include "riffle/base/file_lock.h"

#include <cerrno>
#include <cstring>

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "riffle/base/error.h"
#include "riffle/base/text.h"

namespace riffle {

FileLock::FileLock(const std::filesystem::path& path, const std::string& what, IfTaken if_taken)
    : what_(what),
      file_(open_own_file(path,
                          O_CLOEXEC | (if_taken == IfTaken::join ? O_RDONLY : O_RDWR | O_CREAT))) {
  if (if_taken == IfTaken::join) {
    require_in_place();
    return;
  }
  const int no_wait = if_taken == IfTaken::refuse ? LOCK_NB : 0;
  int locked = -1;
  do {
    locked = ::flock(file_.number(), LOCK_EX | no_wait);
  } while (locked != 0 && errno == EINTR);
  if (locked != 0) {
    if (errno == EWOULDBLOCK) {
      throw Error(cat(what, " is in use by process ", read_text(path)));
    }
    throw Error(cat("cannot lock ", path.string(), ": ", std::strerror(errno)), ErrorKind::failure);
  }
  require_in_place();
  if (::ftruncate(file_.number(), 0) != 0) return;
  const std::string process = std::to_string(::getpid());
  try {
    file_.write(std::as_bytes(std::span(process)));
  } catch (const Error&) {
    // A full disk. The number is only for messages: the lock itself is the kernel's.
  }
}

bool FileLock::is_in_place() const {
  struct stat held {
  }, there{};
  return ::fstat(file_.number(), &held) == 0 && ::lstat(file_.path().c_str(), &there) == 0 &&
         held.st_dev == there.st_dev && held.st_ino == there.st_ino;
}

void FileLock::require_in_place() const {
  if (is_in_place()) return;
  throw LostLock(cat(what_, " was moved or removed, or its ", file_.path().filename().string(),
                     " file was, while this process used it: nothing more is written there"),
                 ErrorKind::failure);
}

}  // namespace riffle

#include "riffle/base/file_lock.h"

#include <cerrno>
#include <cstring>

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include "riffle/base/error.h"
#include "riffle/base/text.h"

namespace riffle {

FileLock::FileLock(const std::filesystem::path& path, const std::string& what, IfTaken if_taken)
    : file_(path, O_RDWR | O_CREAT | O_CLOEXEC) {
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
  if (::ftruncate(file_.number(), 0) != 0) return;
  const std::string process = std::to_string(::getpid());
  try {
    file_.write(std::as_bytes(std::span(process)));
  } catch (const Error&) {
    // A full disk. The number is only for messages: the lock itself is the kernel's.
  }
}

}  // namespace riffle

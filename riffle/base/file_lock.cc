#include "riffle/base/file_lock.h"

#include <cerrno>

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include "riffle/base/error.h"
#include "riffle/base/text.h"

namespace riffle {

FileLock::FileLock(const std::filesystem::path& path, const std::string& what)
    : file_(path, O_RDWR | O_CREAT | O_CLOEXEC) {
  if (::flock(file_.number(), LOCK_EX | LOCK_NB) != 0) {
    if (errno == EWOULDBLOCK) {
      throw Error(cat(what, " is in use by process ", read_text(path)));
    }
    throw Error(cat("cannot lock ", path.string()), ErrorKind::failure);
  }
  // Only a word for people: the lock itself is the kernel's.
  if (::ftruncate(file_.number(), 0) == 0) {
    const std::string process = std::to_string(::getpid());
    file_.write(std::as_bytes(std::span(process)));
  }
}

}  // namespace riffle

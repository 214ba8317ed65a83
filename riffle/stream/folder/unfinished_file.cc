#include "riffle/stream/folder/unfinished_file.h"

#include <cerrno>
#include <csignal>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace riffle {

bool is_link(const std::filesystem::path& path) {
  struct stat found {};
  return ::lstat(path.c_str(), &found) == 0 && (S_ISLNK(found.st_mode) || found.st_nlink > 1);
}

bool is_unfinished(const std::filesystem::path& path) {
  if (is_link(path)) return false;
  const int file = ::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
  if (file < 0) return false;
  // If somebody opens the file while the lease is held, the kernel sends a signal, by default one
  // that ends the program; this one is ignored unless somebody asked for it.
  ::fcntl(file, F_SETSIG, SIGURG);
  const bool granted = ::fcntl(file, F_SETLEASE, F_RDLCK) == 0;
  const bool written_to = !granted && errno == EAGAIN;
  if (granted) ::fcntl(file, F_SETLEASE, F_UNLCK);
  ::close(file);
  return written_to;
}

}  // namespace riffle

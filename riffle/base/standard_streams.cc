#include "riffle/base/standard_streams.h"

#include <cerrno>

#include <fcntl.h>
#include <unistd.h>

namespace riffle {

void open_standard_streams() {
  for (int stream = STDIN_FILENO; stream <= STDERR_FILENO; ++stream) {
    const bool closed = ::fcntl(stream, F_GETFD) == -1 && errno == EBADF;
    // open() takes the lowest number that is free: this one.
    if (closed && ::open("/dev/null", O_RDWR) != stream) ::_exit(1);
  }
}

}  // namespace riffle

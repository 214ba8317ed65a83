#include "riffle/base/file.h"

#include <cerrno>
#include <cstring>
#include <fstream>
#include <sstream>

#include <fcntl.h>
#include <unistd.h>

#include "riffle/base/error.h"
#include "riffle/base/text.h"

namespace riffle {
namespace fs = std::filesystem;
namespace {

[[noreturn]] void fail(const std::string& what, const fs::path& path) {
  const int error = errno;
  throw Error(cat(what, ' ', path.string(), ": ", std::strerror(error)), ErrorKind::failure);
}

// An open file descriptor, closed on the way out.
class Descriptor {
 public:
  Descriptor(const fs::path& path, int flags)
      : path_(path), fd_(::open(path.c_str(), flags, 0644)) {
    if (fd_ < 0) fail("cannot open", path);
  }
  ~Descriptor() {
    if (fd_ >= 0) ::close(fd_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;

  void write_all(std::span<const std::byte> content) {
    while (!content.empty()) {
      const ssize_t written = ::write(fd_, content.data(), content.size());
      if (written < 0 && errno == EINTR) continue;
      if (written <= 0) fail("cannot write", path_);
      content = content.subspan(static_cast<std::size_t>(written));
    }
  }
  void sync() {
    if (::fsync(fd_) != 0) fail("cannot flush", path_);
  }
  void close() {
    const int fd = fd_;
    fd_ = -1;
    if (::close(fd) != 0) fail("cannot close", path_);
  }

 private:
  fs::path path_;
  int fd_;
};

std::ifstream open_for_reading(const fs::path& path) {
  std::error_code ignored;
  if (fs::is_directory(path, ignored)) throw Error(cat(path.string(), " is a folder, not a file"));
  std::ifstream in(path, std::ios::binary);
  if (!in) throw Error(cat("cannot read ", path.string(), ": ", std::strerror(errno)));
  return in;
}

}  // namespace

std::vector<std::byte> read_bytes(const fs::path& path) {
  auto in = open_for_reading(path);
  in.seekg(0, std::ios::end);
  const auto size = in.tellg();
  if (size < 0) throw Error(cat("cannot read ", path.string(), ": it has no size"));
  std::vector<std::byte> content(static_cast<std::size_t>(size));
  in.seekg(0);
  in.read(reinterpret_cast<char*>(content.data()), static_cast<std::streamsize>(content.size()));
  if (!in) throw Error(cat("cannot read all of ", path.string()), ErrorKind::failure);
  return content;
}

std::string read_text(const fs::path& path) {
  auto in = open_for_reading(path);
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

void write_atomically(const fs::path& path, std::span<const std::byte> content) {
  const fs::path folder = path.has_parent_path() ? path.parent_path() : fs::path(".");
  std::error_code error;
  fs::create_directories(folder, error);
  if (error)
    throw Error(cat("cannot make folder ", folder.string(), ": ", error.message()),
                ErrorKind::failure);

  const fs::path temporary = folder / cat('.', path.filename().string(), ".tmp-", ::getpid());
  try {
    Descriptor file(temporary, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC);
    file.write_all(content);
    file.sync();
    file.close();
    if (std::rename(temporary.c_str(), path.c_str()) != 0) fail("cannot rename to", path);
    Descriptor(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC).sync();
  } catch (...) {
    fs::remove(temporary, error);
    throw;
  }
}

void write_atomically(const fs::path& path, std::string_view content) {
  write_atomically(path, std::as_bytes(std::span(content)));
}

}  // namespace riffle

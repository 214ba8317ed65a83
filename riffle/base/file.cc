#include "riffle/base/file.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <utility>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "riffle/base/error.h"
#include "riffle/base/file_faults.h"
#include "riffle/base/new_file.h"
#include "riffle/base/text.h"

namespace riffle {
namespace fs = std::filesystem;
namespace {

constexpr const char* kTemporary = ".tmp-";

[[noreturn]] void fail(const std::string& what, const fs::path& path,
                       ErrorKind kind = ErrorKind::failure) {
  const int error = errno;
  throw Error(cat(what, ' ', path.string(), ": ", std::strerror(error)), kind);
}

// Returns whether a test wants this step to fail, and sets errno if so.
bool faulty(const FileFault& fault) {
  errno = fault.error;
  return fault.error != 0;
}

struct stat status_of(const Descriptor& file) {
  struct stat status {};
  if (::fstat(file.number(), &status) != 0) fail("cannot read the size of", file.path());
  return status;
}

fs::path folder_of(const fs::path& path) {
  return path.has_parent_path() ? path.parent_path() : fs::path(".");
}

void sync_folder(const fs::path& folder) {
  Descriptor(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC).sync();
}

Descriptor require_no_folder(Descriptor file) {
  if (S_ISDIR(status_of(file).st_mode)) {
    throw Error(cat(file.path().string(), " is a folder, not a file"));
  }
  return file;
}

Descriptor require_regular(Descriptor opened) {
  Descriptor file = require_no_folder(std::move(opened));
  if (S_ISREG(status_of(file).st_mode)) return file;
  throw Error(cat(file.path().string(), " is not a regular file"));
}

// Does not wait for somebody to write to a pipe.
Descriptor open_for_reading(const fs::path& path) {
  return require_regular({path, O_RDONLY | O_CLOEXEC | O_NONBLOCK});
}

// Reads to the end rather than by size: a pipe has none, and a file may grow.
std::string read_to_end(const Descriptor& file, std::size_t most) {
  const fs::path& path = file.path();
  std::string text;
  std::array<char, 65536> chunk;
  while (true) {
    const FileFault fault = FileFaults::decide(FileStep::read, path);
    if (faulty(fault)) fail("cannot read", path);
    const ssize_t got = ::read(file.number(), chunk.data(), std::min(chunk.size(), fault.most));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) fail("cannot read", path);
    if (got == 0) return text;
    text.append(chunk.data(), static_cast<std::size_t>(got));
    if (text.size() > most) {
      throw Error(cat(path.string(), " has more than ", bytes_text(most)));
    }
  }
}

}  // namespace

Descriptor::Descriptor(const fs::path& path, int flags) : path_(path), fd_(-1) {
  if (!faulty(FileFaults::decide(FileStep::open, path))) {
    fd_ = ::open(path.c_str(), flags, 0644);
    // A file server has a lease on the file and gives it back when it is asked to: that is worth a
    // wait. Pipes do not fail in this way.
    if (fd_ < 0 && errno == EWOULDBLOCK) fd_ = ::open(path.c_str(), flags & ~O_NONBLOCK, 0644);
  }
  if (fd_ >= 0) return;
  const bool reading = (flags & O_ACCMODE) == O_RDONLY;
  fail(reading ? "cannot read" : "cannot open", path,
       reading && errno == ENOENT ? ErrorKind::bad_input : ErrorKind::failure);
}

Descriptor::~Descriptor() {
  if (fd_ >= 0) ::close(fd_);
}

Descriptor::Descriptor(Descriptor&& other) noexcept
    : path_(std::move(other.path_)), fd_(std::exchange(other.fd_, -1)) {}

std::uint64_t Descriptor::size() const {
  return static_cast<std::uint64_t>(status_of(*this).st_size);
}

void Descriptor::write(std::span<const std::byte> content) {
  while (!content.empty()) {
    const FileFault fault = FileFaults::decide(FileStep::write, path_);
    if (faulty(fault)) fail("cannot write", path_);
    const ssize_t written = ::write(fd_, content.data(), std::min(content.size(), fault.most));
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) fail("cannot write", path_);
    content = content.subspan(static_cast<std::size_t>(written));
  }
}

void Descriptor::sync() {
  if (faulty(FileFaults::decide(FileStep::sync, path_)) || ::fsync(fd_) != 0) {
    fail("cannot flush", path_);
  }
}

void Descriptor::close() {
  if (::close(std::exchange(fd_, -1)) != 0) fail("cannot close", path_);
}

Descriptor open_own_file(const fs::path& path, int flags) {
  std::error_code ignored;
  const auto there = fs::symlink_status(path, ignored);
  if (fs::exists(there) && !fs::is_regular_file(there)) {
    throw Error(cat(path.string(), " is a link or another thing that is not a regular file; ",
                    "riffle does not write through it: remove it"));
  }
  return require_regular({path, flags | O_NOFOLLOW | O_NONBLOCK});
}

InputFile::InputFile(const fs::path& path) : file_(open_for_reading(path)), size_(file_.size()) {}

void InputFile::read(std::uint64_t at, std::span<std::byte> out) const {
  while (!out.empty()) {
    const FileFault fault = FileFaults::decide(FileStep::read, file_.path());
    if (faulty(fault)) fail("cannot read", file_.path());
    const ssize_t got = ::pread(file_.number(), out.data(), std::min(out.size(), fault.most),
                                static_cast<off_t>(at));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) fail("cannot read", file_.path());
    if (got == 0) {
      throw Error(cat("cannot read all of ", file_.path().string(), ": it ends early"),
                  ErrorKind::failure);
    }
    at += static_cast<std::uint64_t>(got);
    out = out.subspan(static_cast<std::size_t>(got));
  }
}

AppendFile::AppendFile(const fs::path& path)
    : file_(open_own_file(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC)), size_(file_.size()) {}

void AppendFile::append(std::span<const std::byte> content) {
  try {
    file_.write(content);
  } catch (...) {
    // Even this can fail on a failing disk; the next append then begins after the torn part, which
    // readers know by its checksum or its missing line end.
    if (::ftruncate(file_.number(), static_cast<off_t>(size_)) != 0) size_ = file_.size();
    throw;
  }
  size_ += content.size();
}

void AppendFile::append(std::string_view content) { append(std::as_bytes(std::span(content))); }

void AppendFile::cut(std::uint64_t size) {
  if (size > size_) {
    throw Error(cat(file_.path().string(), " has ", size_, " bytes, fewer than the ", size,
                    " it should have"));
  }
  if (::ftruncate(file_.number(), static_cast<off_t>(size)) != 0) fail("cannot cut", file_.path());
  size_ = size;
}

void AppendFile::sync() {
  file_.sync();
  if (!named_) sync_folder(folder_of(file_.path()));
  named_ = true;
}

std::vector<std::byte> read_bytes(const fs::path& path) {
  const InputFile file(path);
  std::vector<std::byte> content(file.size());
  file.read(0, content);
  return content;
}

std::string read_text(const fs::path& path, std::size_t most) {
  return read_to_end(open_for_reading(path), most);
}

std::string read_given_text(const fs::path& path, std::size_t most) {
  return read_to_end(require_no_folder({path, O_RDONLY | O_CLOEXEC}), most);
}

fs::path temporary_path(const fs::path& path) {
  return folder_of(path) / cat('.', path.filename().string(), kTemporary, ::getpid());
}

void rename_durably(const fs::path& from, const fs::path& to) {
  if (faulty(FileFaults::decide(FileStep::rename, to)) ||
      std::rename(from.c_str(), to.c_str()) != 0) {
    fail("cannot rename to", to);
  }
  sync_folder(folder_of(to));
}

void remove_durably(const fs::path& path) {
  if (::unlink(path.c_str()) == 0) return sync_folder(folder_of(path));
  if (errno != ENOENT) fail("cannot remove", path);
}

void write_atomically(const fs::path& path, std::span<const std::byte> content) {
  NewFile file(path);
  file.append(content);
  file.commit();
}

void write_atomically(const fs::path& path, std::string_view content) {
  write_atomically(path, std::as_bytes(std::span(content)));
}

std::vector<fs::path> list_folder(const fs::path& folder) {
  std::vector<fs::path> found;
  std::error_code error(FileFaults::decide(FileStep::list, folder).error, std::generic_category());
  if (!error) {
    fs::directory_iterator entry(folder, error);
    for (; !error && entry != fs::directory_iterator(); entry.increment(error)) {
      found.push_back(entry->path());
    }
  }
  const bool absent =
      error == std::errc::no_such_file_or_directory || error == std::errc::not_a_directory;
  if (error && !absent) {
    throw Error(cat("cannot list folder ", folder.string(), ": ", error.message()),
                ErrorKind::failure);
  }
  return found;
}

void make_folders(const fs::path& folder) {
  if (folder.empty()) return;
  std::error_code error;
  // Asked once: between two questions another process may make it.
  const fs::file_status status = fs::status(folder, error);
  if (fs::is_directory(status)) return;
  if (fs::exists(status)) {
    throw Error(cat(folder.string(), " is a file, not a folder; give another name"));
  }
  make_folders(folder.parent_path());
  fs::create_directory(folder, error);
  if (error) {
    throw Error(cat("cannot make folder ", folder.string(), ": ", error.message()),
                ErrorKind::failure);
  }
  try {
    sync_folder(folder_of(folder));
  } catch (const Error&) {
    // We may lack the right to flush the parent, and a failing disk will show with the next file.
  }
}

void remove_temporary_files(const fs::path& folder) {
  std::error_code ignored;
  for (const auto& path : list_folder(folder)) {
    const std::string name = path.filename().string();
    if (name.starts_with('.') && name.find(kTemporary) != std::string::npos) {
      fs::remove(path, ignored);
    }
  }
}

}  // namespace riffle

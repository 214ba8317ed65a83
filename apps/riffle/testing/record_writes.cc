// A library for LD_PRELOAD that writes down what a process does to the files below a folder, for
// tests that replay it as disks may have kept it (crash_replay.h).
//
// RIFFLE_RECORD_FOLDER   what is recorded
// RIFFLE_RECORD_LOG      where to: a line of JSON-free text for each step, and its bytes
//
// A record: one letter, two numbers, the lengths of two paths and of the bytes, all in one line of
// text; then the paths and the bytes themselves. Files are known by the number of their inode.

#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <string>

#include <dlfcn.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace {

// Neither may be allocated or destroyed while others use it.
std::mutex& mutex() {
  static std::mutex& made = *new std::mutex;
  return made;
}

const char* folder() {
  static const char* const path = std::getenv("RIFFLE_RECORD_FOLDER");
  return path;
}

int log_file() {
  static const int file = [] {
    const char* const path = std::getenv("RIFFLE_RECORD_LOG");
    return path == nullptr
               ? -1
               : static_cast<int>(::syscall(SYS_openat, AT_FDCWD, path,
                                            O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644));
  }();
  return file;
}

bool is_recorded(const std::string& path) {
  return folder() != nullptr && log_file() >= 0 && path.starts_with(folder());
}

std::string absolute(int at, const char* path) {
  if (path[0] == '/') return path;
  char link[64], base[4096];
  std::snprintf(link, sizeof(link), at == AT_FDCWD ? "/proc/self/cwd" : "/proc/self/fd/%d", at);
  const auto length = ::readlink(link, base, sizeof(base));
  return length < 0 ? path : std::string(base, static_cast<std::size_t>(length)) + '/' + path;
}

std::string path_of(int file) {
  char link[64], path[4096];
  std::snprintf(link, sizeof(link), "/proc/self/fd/%d", file);
  const auto length = ::readlink(link, path, sizeof(path));
  return length < 0 ? "" : std::string(path, static_cast<std::size_t>(length));
}

unsigned long long inode_of(int file) {
  struct stat about {};
  return ::fstat(file, &about) == 0 ? about.st_ino : 0;
}

void put(const void* bytes, std::size_t count) {
  const char* at = static_cast<const char*>(bytes);
  while (count > 0) {
    const auto written = ::syscall(SYS_write, log_file(), at, count);
    if (written <= 0) std::abort();
    at += written;
    count -= static_cast<std::size_t>(written);
  }
}

// The caller holds the mutex from before the step until here, so that records are in the order of
// the steps.
void record(char step, unsigned long long inode, long long number, const std::string& path,
            const std::string& other = "", const void* bytes = nullptr, std::size_t count = 0) {
  char line[256];
  const int length = std::snprintf(line, sizeof(line), "%c %llu %lld %zu %zu %zu\n", step, inode,
                                   number, path.size(), other.size(), count);
  put(line, static_cast<std::size_t>(length));
  put(path.data(), path.size());
  put(other.data(), other.size());
  put(bytes, count);
}

int open_recorded(int at, const char* path, int flags, mode_t mode) {
  const std::string name = absolute(at, path);
  const auto open = [&] { return static_cast<int>(::syscall(SYS_openat, at, path, flags, mode)); };
  if ((flags & (O_WRONLY | O_RDWR)) == 0 || !is_recorded(name)) return open();
  const std::lock_guard lock(mutex());
  const bool was_there = ::access(name.c_str(), F_OK) == 0;
  const int file = open();
  if (file < 0) return file;
  if (!was_there) record('c', inode_of(file), 0, name);
  if (was_there && (flags & O_TRUNC) != 0) record('t', inode_of(file), 0, name);
  return file;
}

long long offset_of(int file) {
  if ((::fcntl(file, F_GETFL) & O_APPEND) != 0) {
    struct stat about {};
    ::fstat(file, &about);
    return about.st_size;
  }
  return ::lseek(file, 0, SEEK_CUR);
}

}  // namespace

extern "C" {

#define RIFFLE_OPEN_MODE                                    \
  mode_t mode = 0;                                          \
  if ((flags & (O_CREAT | O_TMPFILE)) != 0) {               \
    va_list more;                                           \
    va_start(more, flags);                                  \
    mode = static_cast<mode_t>(va_arg(more, unsigned int)); \
    va_end(more);                                           \
  }

int open(const char* path, int flags, ...) {
  RIFFLE_OPEN_MODE
  return open_recorded(AT_FDCWD, path, flags, mode);
}
int open64(const char* path, int flags, ...) {
  RIFFLE_OPEN_MODE
  return open_recorded(AT_FDCWD, path, flags, mode);
}
int openat(int at, const char* path, int flags, ...) {
  RIFFLE_OPEN_MODE
  return open_recorded(at, path, flags, mode);
}

ssize_t write(int file, const void* bytes, size_t count) {
  const auto name = folder() == nullptr ? std::string() : path_of(file);
  if (!is_recorded(name)) return ::syscall(SYS_write, file, bytes, count);
  const std::lock_guard lock(mutex());
  const long long at = offset_of(file);
  const auto written = ::syscall(SYS_write, file, bytes, count);
  if (written > 0) record('w', inode_of(file), at, name, "", bytes, static_cast<size_t>(written));
  return written;
}

ssize_t pwrite(int file, const void* bytes, size_t count, off_t at) {
  const auto name = path_of(file);
  if (!is_recorded(name)) return ::syscall(SYS_pwrite64, file, bytes, count, at);
  const std::lock_guard lock(mutex());
  const auto written = ::syscall(SYS_pwrite64, file, bytes, count, at);
  if (written > 0) record('w', inode_of(file), at, name, "", bytes, static_cast<size_t>(written));
  return written;
}
ssize_t pwrite64(int file, const void* bytes, size_t count, off64_t at) {
  return pwrite(file, bytes, count, at);
}

int ftruncate(int file, off_t size) {
  const auto name = path_of(file);
  if (!is_recorded(name)) return static_cast<int>(::syscall(SYS_ftruncate, file, size));
  const std::lock_guard lock(mutex());
  const int failed = static_cast<int>(::syscall(SYS_ftruncate, file, size));
  if (failed == 0) record('t', inode_of(file), size, name);
  return failed;
}
int ftruncate64(int file, off64_t size) { return ftruncate(file, size); }

int fsync(int file) {
  const auto name = path_of(file);
  if (!is_recorded(name)) return static_cast<int>(::syscall(SYS_fsync, file));
  const std::lock_guard lock(mutex());
  const int failed = static_cast<int>(::syscall(SYS_fsync, file));
  struct stat about {};
  ::fstat(file, &about);
  if (failed == 0) record(S_ISDIR(about.st_mode) ? 'd' : 's', about.st_ino, 0, name);
  return failed;
}
int fdatasync(int file) { return fsync(file); }

int rename(const char* from, const char* to) {
  const std::string source = absolute(AT_FDCWD, from), target = absolute(AT_FDCWD, to);
  const std::lock_guard lock(mutex());
  const int failed = static_cast<int>(::syscall(SYS_renameat, AT_FDCWD, from, AT_FDCWD, to));
  if (failed == 0 && is_recorded(source)) record('r', 0, 0, source, target);
  return failed;
}

int unlinkat(int at, const char* path, int flags) {
  const std::string name = absolute(at, path);
  const std::lock_guard lock(mutex());
  const int failed = static_cast<int>(::syscall(SYS_unlinkat, at, path, flags));
  if (failed == 0 && is_recorded(name)) record('u', 0, 0, name);
  return failed;
}
int unlink(const char* path) { return unlinkat(AT_FDCWD, path, 0); }
int remove(const char* path) {
  const int failed = unlink(path);
  return failed == 0 ? 0 : unlinkat(AT_FDCWD, path, AT_REMOVEDIR);
}

int mkdir(const char* path, mode_t mode) {
  const std::string name = absolute(AT_FDCWD, path);
  const std::lock_guard lock(mutex());
  const int failed = static_cast<int>(::syscall(SYS_mkdirat, AT_FDCWD, path, mode));
  if (failed == 0 && is_recorded(name)) record('m', 0, 0, name);
  return failed;
}

}  // extern "C"

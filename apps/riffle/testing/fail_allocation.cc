// A library for LD_PRELOAD that lets one allocation of a process fail, for tests of what is left
// then.
//
// RIFFLE_FAIL_BELOW    counting begins when a file below this folder is first opened
// RIFFLE_FAIL_AT       the number of the allocation that fails, from 1; 0: none
// RIFFLE_FAIL_COUNT    a file that gets the number of allocations at the end
//
// What counts is what the program itself allocates, and the tensors that LibTorch does. Other
// allocations of libraries do not: oneDNN, inside LibTorch, and noexcept functions of the C++
// library do not survive a failure.

#include <atomic>
#include <cerrno>
#include <cstdarg>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>

#include <fcntl.h>
#include <link.h>
#include <malloc.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace {

std::atomic<bool> counting = false;
std::atomic<long> count = 0;

struct Range {
  std::uintptr_t begin = 0, end = 0;
};

// Where the code is of the program (nullptr), or of the first library with such a name.
Range code_of(const char* library) {
  struct Search {
    const char* library;
    Range found;
  } search{library, {}};
  ::dl_iterate_phdr(
      [](dl_phdr_info* info, std::size_t, void* out) {
        auto& [wanted, found] = *static_cast<Search*>(out);
        if (wanted != nullptr && std::strstr(info->dlpi_name, wanted) == nullptr) return 0;
        for (int i = 0; i < info->dlpi_phnum; ++i) {
          const auto& part = info->dlpi_phdr[i];
          if (part.p_type != PT_LOAD || (part.p_flags & PF_X) == 0) continue;
          const auto begin = info->dlpi_addr + part.p_vaddr;
          found = {begin, begin + part.p_memsz};
        }
        return 1;  // the program comes first
      },
      &search);
  return search.found;
}

bool is_in(const Range& range, const void* caller) {
  const auto at = reinterpret_cast<std::uintptr_t>(caller);
  return at >= range.begin && at < range.end;
}

bool fails() {
  static const long at = [] {
    const char* const text = std::getenv("RIFFLE_FAIL_AT");
    return text == nullptr ? 0 : std::atol(text);
  }();
  return counting && ++count == at;
}

void* allocate(std::size_t bytes, const void* caller) {
  static const Range program = code_of(nullptr);
  if (is_in(program, caller) && fails()) return nullptr;
  return std::malloc(bytes == 0 ? 1 : bytes);
}

void* or_throw(void* made) {
  if (made == nullptr) throw std::bad_alloc();
  return made;
}

int open_counting(const char* path, int flags, mode_t mode) {
  static const char* const below = std::getenv("RIFFLE_FAIL_BELOW");
  if (below != nullptr && std::strstr(path, below) != nullptr) counting = true;
  return static_cast<int>(::syscall(SYS_openat, AT_FDCWD, path, flags, mode));
}

struct AtTheEnd {
  ~AtTheEnd() {
    const char* const path = std::getenv("RIFFLE_FAIL_COUNT");
    if (path == nullptr) return;
    if (FILE* file = std::fopen(path, "w")) {
      std::fprintf(file, "%ld\n", count.load());
      std::fclose(file);
    }
  }
} at_the_end;

}  // namespace

#define RIFFLE_CALLER __builtin_return_address(0)

void* operator new(std::size_t bytes) { return or_throw(allocate(bytes, RIFFLE_CALLER)); }
void* operator new[](std::size_t bytes) { return or_throw(allocate(bytes, RIFFLE_CALLER)); }
void* operator new(std::size_t bytes, const std::nothrow_t&) noexcept {
  return allocate(bytes, RIFFLE_CALLER);
}
void* operator new[](std::size_t bytes, const std::nothrow_t&) noexcept {
  return allocate(bytes, RIFFLE_CALLER);
}
void operator delete(void* made) noexcept { std::free(made); }
void operator delete[](void* made) noexcept { std::free(made); }
void operator delete(void* made, std::size_t) noexcept { std::free(made); }
void operator delete[](void* made, std::size_t) noexcept { std::free(made); }

extern "C" {

int posix_memalign(void** made, size_t alignment, size_t bytes) {
  static const Range tensors = code_of("libc10.so");
  const bool none = is_in(tensors, RIFFLE_CALLER) && fails();
  *made = none ? nullptr : ::memalign(alignment, bytes);
  return *made == nullptr ? ENOMEM : 0;
}

int open(const char* path, int flags, ...) {
  mode_t mode = 0;
  if ((flags & (O_CREAT | O_TMPFILE)) != 0) {
    va_list more;
    va_start(more, flags);
    mode = static_cast<mode_t>(va_arg(more, unsigned int));
    va_end(more);
  }
  return open_counting(path, flags, mode);
}
int open64(const char* path, int flags, ...) {
  mode_t mode = 0;
  if ((flags & (O_CREAT | O_TMPFILE)) != 0) {
    va_list more;
    va_start(more, flags);
    mode = static_cast<mode_t>(va_arg(more, unsigned int));
    va_end(more);
  }
  return open_counting(path, flags, mode);
}

}  // extern "C"

// Where tests make their temporary folders.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <system_error>

#include <unistd.h>

namespace riffle {

// Returns a folder in memory where there is room, unless TMPDIR says otherwise: tests flush
// thousands of files, and a disk takes milliseconds for each.
inline std::filesystem::path temp_root() {
  constexpr std::uintmax_t kRoom = std::uintmax_t{1} << 30;
  const std::filesystem::path in_memory = "/dev/shm";
  std::error_code none;
  const auto space = std::filesystem::space(in_memory, none);
  const bool usable = !none && space.available >= kRoom && ::access(in_memory.c_str(), W_OK) == 0;
  return usable && std::getenv("TMPDIR") == nullptr ? in_memory
                                                    : std::filesystem::temp_directory_path();
}

}  // namespace riffle

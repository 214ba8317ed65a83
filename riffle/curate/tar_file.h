// A tar file (POSIX ustar) that appears under its name when it is whole. Not thread-safe.
#pragma once

#include <cstddef>
#include <filesystem>
#include <span>
#include <string>

#include "riffle/base/new_file.h"

namespace riffle {

class TarFile {
 public:
  // Creates parent folders.
  explicit TarFile(const std::filesystem::path& path) : file_(path) {}

  // Adds a file of this name. Requires a name that ustar can hold: at most 100 bytes after the last
  // of its slashes, and 155 before it. Throws Error if it cannot be written.
  void add(const std::string& name, std::span<const std::byte> content);

  // Writes the end, makes the file durable and gives it its name.
  void commit();

 private:
  NewFile file_;
};

}  // namespace riffle

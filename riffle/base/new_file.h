// A file that is written in parts and appears under its name when it is whole, for results too
// large to hold in memory or to copy. (write_atomically is for the others.)
//
//   NewFile file("features.npy");
//   file.append(header_with_room);
//   while (...) file.append(rows);
//   file.overwrite_beginning(header);
//   file.commit();
//
// Without commit() nothing is left, and a file that was there before stays. Throws Error naming the
// path if a step fails. Not thread-safe.
#pragma once

#include <cstddef>
#include <filesystem>
#include <optional>
#include <span>
#include <string_view>

#include "riffle/base/file.h"

namespace riffle {

class NewFile {
 public:
  // Creates parent folders.
  explicit NewFile(const std::filesystem::path& path);
  ~NewFile();
  NewFile(const NewFile&) = delete;
  NewFile& operator=(const NewFile&) = delete;

  void append(std::span<const std::byte> content);
  void append(std::string_view content);

  // Replaces as many bytes at the file's start; nothing can be appended after that.
  void overwrite_beginning(std::string_view content);

  // Makes the file durable and gives it its name, replacing a file of that name.
  void commit();

 private:
  std::filesystem::path path_;
  std::filesystem::path temporary_;
  std::optional<Descriptor> file_;
};

}  // namespace riffle

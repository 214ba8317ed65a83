// A file that is written in parts and appears under its name when it is whole: for results too
// large to hold in memory, or to copy. (write_atomically is for the others.)
//
//   NewFile file("features.npy");
//   file.append(header_with_room);
//   while (...) file.append(rows);
//   file.overwrite_beginning(header);
//   file.commit();
//
// Without commit() nothing is left behind, and a file that was there before stays. Whatever fails
// throws Error naming the path. Used by one thread.
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
  // Parent folders are made.
  explicit NewFile(const std::filesystem::path& path);
  ~NewFile();
  NewFile(const NewFile&) = delete;
  NewFile& operator=(const NewFile&) = delete;

  void append(std::span<const std::byte> content);
  void append(std::string_view content);

  // In place of as many bytes at the file's start; nothing can be appended after that.
  void overwrite_beginning(std::string_view content);

  // Makes it durable and gives it its name, in place of what had it.
  void commit();

 private:
  std::filesystem::path path_;
  std::filesystem::path temporary_;
  std::optional<Descriptor> file_;
};

}  // namespace riffle

// Files, read and written so that a reader or a crash never meets half of what was written.
//
// Whatever fails throws Error naming the path. Every step can be made to fail in tests
// (file_faults.h). The functions may be called from any thread, an object is used by one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace riffle {

// The content of a file.
std::vector<std::byte> read_bytes(const std::filesystem::path& path);
std::string read_text(const std::filesystem::path& path);

// What is in a folder, in no order; nothing where there is no such folder.
std::vector<std::filesystem::path> list_folder(const std::filesystem::path& folder);

// Makes a folder with those above it, as far as they are not there, and flushes what got an entry:
// a power cut cannot take a young folder as a whole.
void make_folders(const std::filesystem::path& folder);

// Replaces `path` in one step: a temporary file in the same folder, fsync, rename, fsync of the
// folder. Parent folders are made. Throws Error and leaves the old file untouched when any step
// fails. (NewFile is for what is written in parts.)
void write_atomically(const std::filesystem::path& path, std::span<const std::byte> content);
void write_atomically(const std::filesystem::path& path, std::string_view content);

// Beside `path`: the name of a file that is not whole yet.
std::filesystem::path temporary_path(const std::filesystem::path& path);
// Renames and flushes the folder, both in one file system.
void rename_durably(const std::filesystem::path& from, const std::filesystem::path& to);
// Removes what writers that were killed left in `folder` under such names. Nobody else may be
// writing there.
void remove_temporary_files(const std::filesystem::path& folder);

// An open file. Moves, closes on the way out.
class Descriptor {
 public:
  // `flags` as open(2) takes them.
  Descriptor(const std::filesystem::path& path, int flags);
  ~Descriptor();
  Descriptor(Descriptor&& other) noexcept;
  Descriptor& operator=(Descriptor&&) = delete;

  const std::filesystem::path& path() const { return path_; }
  int number() const { return fd_; }
  std::uint64_t size() const;
  // At the end, or where the last write stopped.
  void write(std::span<const std::byte> content);
  void sync();
  void close();

 private:
  std::filesystem::path path_;
  int fd_;
};

// A file that is read in parts.
class InputFile {
 public:
  explicit InputFile(const std::filesystem::path& path);

  std::uint64_t size() const { return size_; }
  // Fills `out` from the given place. Throws Error when the file ends before.
  void read(std::uint64_t at, std::span<std::byte> out) const;

 private:
  Descriptor file_;
  std::uint64_t size_;
};

// A file that only grows.
class AppendFile {
 public:
  // Made when it is not there.
  explicit AppendFile(const std::filesystem::path& path);

  std::uint64_t size() const { return size_; }
  // All or nothing: when the disk takes only a part, the file is cut back and Error thrown.
  void append(std::span<const std::byte> content);
  void append(std::string_view content);
  // When this returns, all that was appended survives a power cut.
  void sync();

 private:
  Descriptor file_;
  std::uint64_t size_;
  bool named_ = false;  // the folder's entry is durable too
};

}  // namespace riffle

// Files, written so that neither a reader nor a crash leaves anybody with half of one.
//
// Everything here throws Error, naming the path, if a step fails. Tests can make every step fail
// (file_faults.h). Functions are thread-safe, objects are not.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace riffle {

// Return the content of a file. Throw Error if it is not a regular file: a pipe that somebody put
// in its place would be waited for.
std::vector<std::byte> read_bytes(const std::filesystem::path& path);
// Throws Error if it is longer than `most` bytes.
std::string read_text(const std::filesystem::path& path,
                      std::size_t most = std::numeric_limits<std::size_t>::max());
// Does the same for a file that the user names, which may be a pipe.
std::string read_given_text(const std::filesystem::path& path, std::size_t most);

// Returns the paths in a folder, in no order; none if there is no such folder.
std::vector<std::filesystem::path> list_folder(const std::filesystem::path& folder);

// Creates a folder and its parents where they are missing, and flushes the folders that got an
// entry, so that a new folder survives a power cut. Throws Error if a file has its name.
void make_folders(const std::filesystem::path& folder);

// Replaces `path` in one step: a temporary file in the same folder, fsync, rename, fsync of the
// folder. Creates parent folders. Throws Error and leaves the old file untouched if any step fails.
// (NewFile is for files written in parts.)
void write_atomically(const std::filesystem::path& path, std::span<const std::byte> content);
void write_atomically(const std::filesystem::path& path, std::string_view content);

// Returns the name, beside `path`, of a file that is not whole yet.
std::filesystem::path temporary_path(const std::filesystem::path& path);
// Renames a file and flushes its new folder. Requires both paths to be on one file system.
void rename_durably(const std::filesystem::path& from, const std::filesystem::path& to);
// Removes a file, if it is there, and flushes its folder.
void remove_durably(const std::filesystem::path& path);
// Removes temporary files that killed writers left in `folder`. Requires that nobody writes there.
void remove_temporary_files(const std::filesystem::path& folder);

// An open file, closed by the destructor.
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
  // Writes where the last write stopped, or at the end of a file opened with O_APPEND.
  void write(std::span<const std::byte> content);
  void sync();
  void close();

 private:
  std::filesystem::path path_;
  int fd_;
};

// Opens a file of riffle's own to write into it. Throws Error if a symbolic link or anything else
// that is not a regular file is in its place.
Descriptor open_own_file(const std::filesystem::path& path, int flags);

// A regular file that is read in parts.
class InputFile {
 public:
  explicit InputFile(const std::filesystem::path& path);

  std::uint64_t size() const { return size_; }
  // Fills `out` with the bytes from `at` on. Throws Error if the file ends before.
  void read(std::uint64_t at, std::span<std::byte> out) const;

 private:
  Descriptor file_;
  std::uint64_t size_;
};

// A file of riffle's own that only grows.
class AppendFile {
 public:
  // Creates the file if it is missing. Throws Error if a link is in its place (open_own_file).
  explicit AppendFile(const std::filesystem::path& path);

  std::uint64_t size() const { return size_; }
  // Appends all or nothing: if the disk takes only a part, cuts the file back and throws Error.
  void append(std::span<const std::byte> content);
  void append(std::string_view content);
  // Leaves the first `size` bytes. Throws Error if there are fewer.
  void cut(std::uint64_t size);
  // Makes everything appended so far survive a power cut.
  void sync();

 private:
  Descriptor file_;
  std::uint64_t size_;
  bool named_ = false;  // whether the folder's entry is durable too
};

}  // namespace riffle

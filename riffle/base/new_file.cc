#include "riffle/base/new_file.h"

#include <cerrno>
#include <cstring>

#include <fcntl.h>
#include <unistd.h>

#include "riffle/base/error.h"
#include "riffle/base/text.h"

namespace riffle {
namespace fs = std::filesystem;
namespace {

fs::path make_room_for(const fs::path& path) {
  fs::path temporary = temporary_path(path);
  make_folders(temporary.parent_path());
  std::error_code ignored;
  if (fs::is_directory(path, ignored)) throw Error(cat(path.string(), " is a folder, not a file"));
  return temporary;
}

}  // namespace

NewFile::NewFile(const fs::path& path) : path_(path), temporary_(make_room_for(path)) {
  // What is there was left by a killed process of the same number, or put there to be written
  // through.
  std::error_code ignored;
  fs::remove(temporary_, ignored);
  file_.emplace(temporary_, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC);
}

NewFile::~NewFile() {
  if (!file_) return;
  std::error_code ignored;
  fs::remove(temporary_, ignored);
}

void NewFile::append(std::span<const std::byte> content) { file_->write(content); }

void NewFile::append(std::string_view content) { append(std::as_bytes(std::span(content))); }

void NewFile::overwrite_beginning(std::string_view content) {
  if (::lseek(file_->number(), 0, SEEK_SET) != 0) {
    throw Error(cat("cannot write ", path_.string(), ": ", std::strerror(errno)),
                ErrorKind::failure);
  }
  append(content);
}

void NewFile::commit() {
  file_->sync();
  file_->close();
  rename_durably(temporary_, path_);
  file_.reset();
}

}  // namespace riffle

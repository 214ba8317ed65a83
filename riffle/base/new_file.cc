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

// The name is one that remove_temporary_files knows.
fs::path temporary_for(const fs::path& path) {
  const fs::path folder = path.has_parent_path() ? path.parent_path() : fs::path(".");
  std::error_code error;
  fs::create_directories(folder, error);
  if (error) {
    throw Error(cat("cannot make folder ", folder.string(), ": ", error.message()),
                ErrorKind::failure);
  }
  if (fs::is_directory(path)) throw Error(cat(path.string(), " is a folder, not a file"));
  return folder / cat('.', path.filename().string(), ".tmp-", ::getpid());
}

}  // namespace

NewFile::NewFile(const fs::path& path) : path_(path), temporary_(temporary_for(path)) {
  file_.emplace(temporary_, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC);
}

NewFile::~NewFile() {
  if (!file_) return;
  file_.reset();
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
  std::error_code error;
  fs::rename(temporary_, path_, error);
  if (error) {
    throw Error(cat("cannot rename to ", path_.string(), ": ", error.message()),
                ErrorKind::failure);
  }
  file_.reset();
  Descriptor(temporary_.parent_path(), O_RDONLY | O_DIRECTORY | O_CLOEXEC).sync();
}

}  // namespace riffle

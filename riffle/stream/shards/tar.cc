#include "riffle/stream/shards/tar.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include <archive.h>
#include <archive_entry.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "riffle/base/text.h"

namespace riffle {
namespace {

constexpr std::size_t kReadBytes = std::size_t{1} << 18;
// To get past a member of a compressed tar, all of it is unpacked. Past this much the rest of the
// file is not worth the time: a few kilobytes can claim to hold many terabytes.
constexpr std::uint64_t kMaxUnpacked = std::uint64_t{4} << 30;
// Nor is a file that unpacks to more than this many times its size and this many bytes: pictures
// are compressed already, and hardly shrink.
constexpr std::uint64_t kMaxRatio = 100;
constexpr std::uint64_t kFreeUnpacked = std::uint64_t{1} << 30;

}  // namespace

struct Tar::File {
  int descriptor = -1;
  std::int64_t size = 0;
  std::int64_t at = 0;
  std::array<std::byte, kReadBytes> buffer;

  explicit File(const std::filesystem::path& path) {
    // Non-blocking: a pipe must not hold up the stream.
    descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (descriptor < 0) throw BrokenTar(kUnreadableShard, std::strerror(errno));
    struct stat found {};
    const bool known = ::fstat(descriptor, &found) == 0;
    size = found.st_size;
    if (known && S_ISREG(found.st_mode) && size > 0) return;
    ::close(descriptor);
    if (known && S_ISREG(found.st_mode)) throw BrokenTar("empty shard", "0 bytes");
    throw BrokenTar(kUnreadableShard, "not a regular file");
  }
  ~File() { ::close(descriptor); }
  File(const File&) = delete;
  File& operator=(const File&) = delete;

  static la_ssize_t read(::archive* archive, void* self, const void** bytes) {
    auto& file = *static_cast<File*>(self);
    const auto count = ::pread(file.descriptor, file.buffer.data(), file.buffer.size(), file.at);
    if (count < 0) {
      archive_set_error(archive, errno, "%s", std::strerror(errno));
      return -1;
    }
    file.at += count;
    *bytes = file.buffer.data();
    return count;
  }
  static la_int64_t skip(::archive*, void* self, la_int64_t request) {
    auto& file = *static_cast<File*>(self);
    const auto count = std::clamp<la_int64_t>(request, 0, file.size - file.at);
    file.at += count;
    return count;
  }
};

void Tar::Close::operator()(::archive* archive) const { archive_read_free(archive); }

Tar::Tar(const std::filesystem::path& path, std::int64_t offset, const std::atomic<bool>& leave)
    : leave_(leave), file_(std::make_unique<File>(path)) {
  open(0);
  if (offset == 0) return;
  if (!is_compressed()) {
    open(offset);
    return;
  }
  do {
    first_ = next_header();
  } while (first_ && first_->offset < offset);
}

Tar::~Tar() = default;

void Tar::open(std::int64_t offset) {
  base_ = std::min(offset, file_->size);
  file_->at = base_;
  archive_.reset(archive_read_new());
  if (!archive_) throw std::bad_alloc();
  auto* const archive = archive_.get();
  archive_read_support_format_tar(archive);
  if (offset == 0) {  // what lies inside cannot be compressed once more
    archive_read_support_filter_gzip(archive);
    archive_read_support_filter_bzip2(archive);
    archive_read_support_filter_xz(archive);
    archive_read_support_filter_zstd(archive);
    archive_read_support_filter_lz4(archive);
  }
  if (archive_read_open2(archive, file_.get(), nullptr, File::read, File::skip, nullptr) !=
      ARCHIVE_OK) {
    throw_broken();
  }
  constexpr int kPlainAndOne = 2;
  if (archive_filter_count(archive) > kPlainAndOne) {
    throw BrokenTar("broken shard", "compressed more than once");
  }
}

bool Tar::is_compressed() const { return archive_filter_count(archive_.get()) > 1; }

// libarchive would skip a member in one call, which may take minutes.
void Tar::skip_rest() {
  const void* block = nullptr;
  std::size_t count = 0;
  la_int64_t at = 0;
  int status = ARCHIVE_OK;
  while (status == ARCHIVE_OK) {
    require_stay();
    status = archive_read_data_block(archive_.get(), &block, &count, &at);
  }
  if (status != ARCHIVE_EOF) throw_broken();
}

void Tar::require_stay() const {
  if (leave_) throw BrokenTar("broken shard", "asked to stop");
}

std::optional<TarMember> Tar::next() {
  if (!first_) return next_header();
  return std::exchange(first_, std::nullopt);
}

std::optional<TarMember> Tar::next_header() {
  if (end_offset_) return std::nullopt;
  if (base_ == file_->size) {
    end_offset_ = base_;
    return std::nullopt;
  }
  require_stay();
  if (has_member_ && is_compressed()) skip_rest();
  struct archive_entry* entry = nullptr;
  const int status = archive_read_next_header(archive_.get(), &entry);
  const std::int64_t offset = base_ + archive_read_header_position(archive_.get());
  if (status == ARCHIVE_EOF) {
    end_offset_ = offset;
    return std::nullopt;
  }
  // A warning is about a name or a date. Retrying would search for anything like a header.
  if (status != ARCHIVE_OK && status != ARCHIVE_WARN) throw_broken();
  has_member_ = true;
  const auto size = archive_entry_size(entry);
  if (size < 0) throw BrokenTar("broken shard", "a member of negative size");
  TarMember member;
  member.size = member_size_ = static_cast<std::uint64_t>(size);
  member.offset = offset;
  // A hard link has no bytes of its own.
  member.is_file =
      archive_entry_filetype(entry) == AE_IFREG && archive_entry_hardlink(entry) == nullptr;
  const char* name = archive_entry_pathname(entry);
  if (name == nullptr) name = archive_entry_pathname_utf8(entry);
  if (name != nullptr) member.name = name;
  if (is_compressed() && member.size > kMaxUnpacked) {
    throw BrokenTar("broken shard",
                    cat("a member of ", bytes_text(member.size), ", compressed: not read past it"));
  }
  const std::uint64_t unpacked = static_cast<std::uint64_t>(offset) + member.size;
  if (is_compressed() &&
      unpacked > kFreeUnpacked + kMaxRatio * static_cast<std::uint64_t>(file_->size)) {
    throw BrokenTar("broken shard", cat("unpacks to more than ", kMaxRatio, " times its size"));
  }
  return member;
}

std::vector<std::byte> Tar::read() {
  std::vector<std::byte> bytes;
  while (true) {
    require_stay();
    const void* block = nullptr;
    std::size_t count = 0;
    la_int64_t at = 0;
    const int status = archive_read_data_block(archive_.get(), &block, &count, &at);
    if (status == ARCHIVE_EOF) return bytes;
    if (status != ARCHIVE_OK) throw_broken();
    // A file with holes is not a picture: its parts are joined as they come. Only a forged one has
    // more bytes than its size.
    if (count > member_size_ - bytes.size()) {
      throw BrokenTar("broken shard", "a member longer than it says");
    }
    const auto* const begin = static_cast<const std::byte*>(block);
    bytes.insert(bytes.end(), begin, begin + count);
  }
}

void Tar::throw_broken() const {
  const char* text = archive_error_string(archive_.get());
  throw BrokenTar(has_member_ || base_ > 0 ? "broken shard" : "not a tar",
                  text == nullptr ? "no reason given" : text);
}

}  // namespace riffle
